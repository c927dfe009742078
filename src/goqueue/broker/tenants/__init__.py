"""Tenants: whose somebody is, and how a tenant lives and goes."""
