"""The schema registry: subjects, versions and ids."""
