"""What is studied: data sets and problems (the only package that the other three all use)."""
