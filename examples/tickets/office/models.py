"""Orders, in the database of the app."""

from django.db import models


class Order(models.Model):
    customer = models.CharField(max_length=100)
    seats = models.PositiveIntegerField()
    confirmed_at = models.DateTimeField(null=True)
    reminded_at = models.DateTimeField(null=True)
