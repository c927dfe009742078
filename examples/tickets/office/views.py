"""Two pages: one takes an order, one tells what became of it."""

import json

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from office.models import Order
from office.tasks import confirm, remind

SEATS_MAX = 10
CUSTOMER_CHARS_MAX = 100


@require_POST
def take(request: HttpRequest) -> HttpResponse:
    """The answer is sent when the order is in the database and both of its tasks are on GoQueue's disk."""
    try:
        customer, seats = read(request.body)
    except ValueError as error:
        return JsonResponse({"error": str(error)}, status=400)
    with transaction.atomic():
        order = Order.objects.create(customer=customer, seats=seats)
        # Not before the commit: a worker could be quicker than the database.
        transaction.on_commit(lambda: send(order.pk))
    return JsonResponse({"order": order.pk}, status=202)


def read(body: bytes) -> tuple[str, int]:
    try:
        wish = json.loads(body)
    except ValueError as error:
        raise ValueError("the body is not JSON") from error
    customer, seats = (wish.get("customer"), wish.get("seats")) if isinstance(wish, dict) else (None, None)
    if not isinstance(customer, str) or not 1 <= len(customer) <= CUSTOMER_CHARS_MAX:
        raise ValueError(f"customer: a name of 1 to {CUSTOMER_CHARS_MAX} characters")
    if type(seats) is not int or not 1 <= seats <= SEATS_MAX:
        raise ValueError(f"seats: a number from 1 to {SEATS_MAX}")
    return customer, seats


def send(number: int) -> None:
    confirm.enqueue(number)
    remind.using(run_after=timezone.now() + settings.REMIND_AFTER).enqueue(number)


@require_GET
def show(request: HttpRequest, number: int) -> HttpResponse:  # noqa: ARG001  the shape of a view
    order = get_object_or_404(Order, pk=number)
    return JsonResponse(
        {
            "customer": order.customer,
            "seats": order.seats,
            "confirmed_at": order.confirmed_at,
            "reminded_at": order.reminded_at,
        }
    )
