"""Wiring: the one place where settings, clock and disk of a real machine meet the rooms below."""
