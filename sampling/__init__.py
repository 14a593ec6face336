"""Monte Carlo on the posterior; knows no prediction."""
