"""From finished runs to a verdict: which model predicts better, by how much, where, how surely."""
