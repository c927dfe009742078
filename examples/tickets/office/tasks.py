"""What is done after an order. A task may be done twice, so each changes an order only if that has not happened yet."""

from django.tasks import task
from django.utils import timezone

from office.models import Order


@task(priority=50)
def confirm(number: int) -> None:
    """With a priority over 0, so that a backlog of mails does not delay it."""
    if Order.objects.filter(pk=number, confirmed_at=None).update(confirmed_at=timezone.now()):
        print(f"order {number} is confirmed", flush=True)


@task(queue_name="mails")
def remind(number: int) -> None:
    if Order.objects.filter(pk=number, reminded_at=None).update(reminded_at=timezone.now()):
        print(f"the customer of order {number} is reminded", flush=True)
