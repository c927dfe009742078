"""Where the pages are."""

from django.urls import path

from office.views import show, take

urlpatterns = [path("orders", take), path("orders/<int:number>", show)]
