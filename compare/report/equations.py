"""The equations that a report tests, as MathML, and the one explanation of each symbol (arXiv:2508.20989)."""

from __future__ import annotations

from typing import NamedTuple

from compare.report.mathml import mathml


class Equation(NamedTuple):
    """An equation with its title, its MathML, and what it says in words."""

    title: str
    math: str
    words: str


def _equation(title: str, notation: str, alt: str, words: str) -> Equation:
    return Equation(title, mathml(notation, alt), words)


def equations() -> list[Equation]:
    """The equations in the order in which they are used."""
    return [
        _equation(
            "Network",
            r"f(x) = \frac{1}{N_1^{1/2}} ∑_i v_i σ(h_i) , \quad h_i = \frac{w_i · x}{N_0^{1/2}}",
            "f(x) = N1^(-1/2) sum_i v_i sigma(h_i), h_i = w_i.x / N0^(1/2)",
            "One hidden layer of N₁ units, standard scaling, no biases.",
        ),
        _equation(
            "Posterior",
            r"p(w, v|X, y) ∝ exp ( − \frac{1}{2 T} ∑_μ (y_μ − f(x_μ))^2 − \frac{λ_0}{2} |w|^2 − \frac{λ_1}{2} |v|^2 )",
            "p(w,v|X,y) proportional to exp(-(1/2T) sum (y-f)^2 - lambda0/2 |w|^2 - lambda1/2 |v|^2)",
            "What the chains sample. The likelihood has the temperature T; the prior has none.",
        ),
        _equation(
            "Distance between the class manifolds",
            r"D^2 = ∑_i ( ∑_μ a_μ σ(h_i^μ) )^2",
            "D^2 = sum_i (sum_mu a_mu sigma(h_i^mu))^2",
            "Squared distance, in the space of the hidden units, between the two class means. ⟨·⟩ is the posterior "
            "average.",
        ),
        _equation(
            "Saddle point",
            r"S(Q) = Q − log Q + \frac{1}{N_1} [ log det \tilde K + y^{⊤} {\tilde K}^{−1} y ] , \quad "
            r"\tilde K = T \bold 1 + \frac{Q}{λ_1} K",
            "S(Q) = Q - log Q + (1/N1) [log det K~ + y^T K~^-1 y], K~ = T 1 + (Q/lambda1) K",
            "The order parameter takes the value Q̄ that minimises S; infinite width is Q = 1.",
        ),
        _equation(
            "Eq. (1)",
            r"⟨s s^{⊤}⟩ = K + \frac{\bar Q}{λ_1 N_1} K ( u u^{⊤} − {\tilde K}^{−1} ) K , \quad u = {\tilde K}^{−1} y",
            "<s s^T> = K + (Q/(lambda1 N1)) K (u u^T - K~^-1) K, u = K~^-1 y",
            "The average over the hidden units of products of their features s on two patterns, to first order in 1/N₁. "
            "⟨D²⟩ is N₁ a⊤⟨s s⊤⟩a, which gives Eq. (3).",
        ),
        _equation(
            "Eq. (3)",
            r"⟨D^2⟩ = N_1 a^{⊤} K a − Δ_1 + Δ_2",
            "<D^2> = N1 a^T K a - Delta1 + Delta2",
            "The prior's distance, minus the shrinking of the features by the data, plus their alignment with the "
            "classes.",
        ),
        _equation(
            "Its two terms",
            r"Δ_1 = \frac{\bar Q}{λ_1} a^{⊤} K {\tilde K}^{−1} K a , \quad "
            r"Δ_2 = \frac{\bar Q}{λ_1} ( a^{⊤} K {\tilde K}^{−1} y )^2 = \frac{λ_1}{\bar Q} ( {\bar f}_+ − {\bar "
            r"f}_− )^2",
            "Delta1 = (Q/lambda1) a^T K K~^-1 K a; Delta2 = (Q/lambda1)(a^T K K~^-1 y)^2 = (lambda1/Q)(f+ - f-)^2",
            "f̄₊ and f̄₋ are the mean outputs over the two classes.",
        ),
        _equation(
            "Eq. (4)",
            r"⟨D^2⟩ ≈ N_1 a^{⊤} K a + Δ_2",
            "<D^2> = N1 a^T K a + Delta2",
            "Eq. (3) with Δ₁ left out: the formula behind the paper's curves against T.",
        ),
        _equation(
            "Q averaged",
            r"p(Q|y) ∝ Q^{N_1/2 − 1} exp ( − N_1 Q/2 ) N(y ; 0 , \tilde K(Q))",
            "p(Q|y) proportional to Q^(N1/2-1) exp(-N1 Q/2) Normal(y; 0, K~(Q))",
            "The fluctuations of Q at finite width: Eq. (3) averaged over this density, by quadrature.",
        ),
        _equation(
            "First order, exact",
            r"⟨D^2⟩ = N_1 a^{⊤} K a + \frac{\bar Q}{2 λ_1} Cov_0 ( (a · s)^2 , (u · s)^2 − s^{⊤} {\tilde K}^{−1} s )",
            "<D^2> = prior + (Q/2 lambda1) Cov_0((a.s)^2, (u.s)^2 - s^T K~^-1 s)",
            "An average over one unit s = σ(h) of the prior. Were s Gaussian, this would be Eq. (3).",
        ),
        _equation(
            "Error budget",
            r"⟨D^2⟩_{\text{measured}} − ⟨D^2⟩_{\text{Eq. (4)}} = − Δ_1 + ( L_3 − L_2 ) + ( L_4 − L_2 ) + "
            r"\text{remainder}",
            "measured - Eq.(4) = -Delta1 + (L3 - L2) + (L4 - L2) + remainder",
            "L₂ is Eq. (3), L₃ the same with Q averaged, L₄ the first-order-exact level.",
        ),
        _equation(
            "Weights, Eqs. (6)–(8)",
            r"⟨w_h w_k⟩ = \frac{1}{λ_0} ( δ_{h k} + ( Λ_1 + Λ_2 )_{h k} )",
            "<w_h w_k> = (1/lambda0) (delta_hk + (Lambda1 + Lambda2)_hk)",
            "Average over the hidden units of the product of two weights of the same unit. No Gaussian closure "
            "enters here.",
        ),
        _equation(
            "Its two corrections",
            r"Λ_2 = \frac{\bar Q}{λ_1 λ_0 N_1 N_0} X^{⊤} ( diag ( (M ∘ H) 1 ) + M ∘ \dot K ) X , \quad M = u u^{⊤}",
            "Lambda2 = (Q/(lambda1 lambda0 N1 N0)) X^T (diag((M o H) 1) + M o Kdot) X, M = u u^T",
            "Λ₁ is the same with M = −K̃⁻¹. ∘ multiplies element by element.",
        ),
        _equation(
            "Predictor",
            r"\bar f(x) = \frac{\bar Q}{λ_1} K_x^{⊤} u , \quad ⟨(y − f(x))^2⟩ = (y − \bar f(x))^2 + \frac{\bar Q}{λ_1} "
            r"( K_{x x} − \frac{\bar Q}{λ_1} K_x^{⊤} {\tilde K}^{−1} K_x )",
            "fbar(x) = (Q/lambda1) K_x^T u; <(y - f)^2> = (y - fbar)^2 + (Q/lambda1)(K_xx - (Q/lambda1) K_x^T K~^-1 K_x)",
            "Mean output, and error, on a pattern x: the Gaussian process whose kernel is scaled by Q̄. Kₓ is the kernel between x and "
            "the training patterns.",
        ),
        _equation(
            "Control variates",
            r"⟨D^2⟩ = ⟨D^2 + c L D^2⟩ , \quad L q = ∇^2 q + ∇ log p · ∇ q",
            "<D^2> = <D^2 + c L D^2>, L q = Laplacian q + grad log p . grad q",
            "⟨Lq⟩ = 0 in the exact posterior for every smooth q (Stein's identity), so that any c is allowed; c is fitted on other chains "
            "than those that it is applied to.",
        ),
    ]


def symbols() -> list[tuple[str, str]]:
    """Each symbol once, as (MathML, meaning)."""

    def inline(notation: str, alt: str) -> str:
        return mathml(notation, alt, block=False)

    return [
        (inline(r"P , N_0 , N_1", "P, N0, N1"), "numbers of patterns, of inputs, and of hidden units"),
        (inline(r"α = P/N_1", "alpha = P/N1"), "load; the infinite-width limit is α → 0"),
        (
            inline(r"X , x , y", "X, x, y"),
            "patterns (one a row), one of them, and the labels that the network is trained on",
        ),
        (inline(r"w , v", "w, v"), "hidden and readout weights"),
        (inline(r"λ_0 , λ_1", "lambda0, lambda1"), "precisions (inverse variances) of their Gaussian priors"),
        (inline(r"T", "T"), "temperature of the likelihood"),
        (
            inline(r"σ , h , s = σ(h)", "sigma, h, s = sigma(h)"),
            "activation, its argument, and the feature of a hidden unit",
        ),
        (inline(r"f", "f"), "output of the network"),
        (inline(r"i ; μ , ν ; h , k", "i; mu, nu; h, k"), "as indices: of a hidden unit; of patterns; of inputs"),
        (inline(r"⟨ · ⟩", "angle brackets"), "average over the posterior"),
        (
            inline(r"C = X X^{⊤}/(λ_0 N_0)", "C = X X^T/(lambda0 N0)"),
            "covariance of h over the prior",
        ),
        (
            inline(r"K_{μ ν} = E[σ(h_μ) σ(h_ν)]", "K_mu,nu = E[sigma(h_mu) sigma(h_nu)]"),
            "kernel: the same for the features, h Gaussian with covariance C",
        ),
        (
            inline(r"a_μ", "a_mu"),
            "+1/P₊ on one class and −1/P₋ on the other, so that a·s is the difference of the class means",
        ),
        (
            inline(r"\dot K = E[σ′ σ′] , H = E[σ″ σ]", "Kdot = E[sigma' sigma'], H = E[sigma'' sigma]"),
            "the same with derivatives of the activation",
        ),
        (inline(r"E , Cov_0", "E, Cov_0"), "average and covariance over the prior of one hidden unit"),
        (
            inline(r"\tilde K , u", "K-tilde, u"),
            "covariance matrix of the labels at a given Q, and its inverse times y",
        ),
        (
            inline(r"Δ_1 , Δ_2", "Delta1, Delta2"),
            "what fitting takes from the features, and what alignment with the labels adds",
        ),
        (inline(r"Q , \bar Q", "Q, Q-bar"), "order parameter λ₁|v|²/N₁, and its value at the saddle point"),
        (inline(r"\bar f", "f-bar"), "posterior mean of the network's output"),
        (inline(r"Λ_1 , Λ_2", "Lambda1, Lambda2"), "data-dependent corrections to the covariance of the weights"),
        (
            inline(r"⟨D^2⟩ − N_1 a^{⊤} K a", "<D^2> - N1 a^T K a"),
            "the EFFECT: what learning adds to the prior's distance. Errors are stated relative to it, because the "
            "prior part "
            "is common to all levels and would hide them",
        ),
        (
            inline(r"p , N(y ; 0 , \tilde K)", "p, N(y; 0, K-tilde)"),
            "a probability density; that of a Gaussian with mean and covariance",
        ),
        (inline(r"∇", "gradient"), "gradient with respect to the sampled variables"),
        (inline(r"δ_{h k}", "delta_hk"), "1 where h = k, else 0"),
        (inline(r"z", "z"), "a difference in units of its standard error"),
        (
            inline(r"\text{ESS} , \text{MCSE}", "ESS, MCSE"),
            "effective number of independent draws; standard error of a mean over them",
        ),
        (
            inline(r"\text{R̂}", "R-hat"),
            "spread between chains over spread within them, after ranking: 1 where the chains agree",
        ),
    ]
