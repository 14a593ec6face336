"""Validation campaigns: a grid in one file, cells on disk named by what they are, engines that work on what is missing."""
