"""The data plane, one package per noun. Every door comes in here, so each check and each count has one place."""
