"""Receivers of alarms on loopback, and a real Prometheus."""
