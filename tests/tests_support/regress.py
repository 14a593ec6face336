"""Faults planted in the sampler that `saddlecheck regress` runs."""


def spoil(monkeypatch, change):
    """Every sampler samples `change(problem)` while it says that it samples the problem."""
    from sampling.model import Model

    class Spoiled:
        @staticmethod
        def of(problem, *place):
            return Model.of(change(problem), *place)

    monkeypatch.setattr("sampling.settings.Model", Spoiled)
