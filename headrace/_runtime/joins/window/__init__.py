"""Pairs of one aligned window, made when it is over."""
