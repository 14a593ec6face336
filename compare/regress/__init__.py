"""CI regression at small N: a few fixed cells, theory exactly and measurements statistically, against a checked-in baseline."""
