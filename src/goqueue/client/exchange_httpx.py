"""HTTP by httpx: where there is TLS, or a transport that somebody brings."""

import ssl
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx

from goqueue.client.exchange import Answer, Ask, ExchangeFailed, ExchangeTimedOut, Streamed


class HttpxExchange:
    def __init__(
        self,
        server: str,
        connect_s: float,
        transport: httpx.AsyncBaseTransport | None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._connect_s = connect_s
        self._client = httpx.AsyncClient(base_url=server, transport=transport, verify=tls or True)

    async def ask(self, ask: Ask) -> Answer:
        with _failures_told():
            response = await self._client.request(
                ask.method,
                ask.target,
                content=ask.content,
                headers=dict(ask.headers),
                timeout=httpx.Timeout(self._connect_s, read=ask.read_s),
            )
        return Answer(response.status_code, response.reason_phrase, response.content)

    @asynccontextmanager
    async def stream(self, ask: Ask) -> AsyncGenerator[Streamed, None]:
        timeout = httpx.Timeout(self._connect_s, read=ask.read_s)
        with _failures_told():
            async with self._client.stream(
                ask.method, ask.target, headers=dict(ask.headers), timeout=timeout
            ) as response:
                yield Streamed(response.status_code, response.reason_phrase, response.aiter_bytes())

    async def close(self) -> None:
        await self._client.aclose()


@contextmanager
def _failures_told() -> Iterator[None]:
    try:
        yield
    except httpx.ConnectTimeout as error:
        raise ExchangeTimedOut("no connection in time").unsent() from error
    except httpx.ConnectError as error:
        raise ExchangeFailed(str(error) or type(error).__name__).unsent() from error
    except httpx.TimeoutException as error:
        raise ExchangeTimedOut("no answer in time") from error
    except httpx.HTTPError as error:
        raise ExchangeFailed(str(error) or type(error).__name__) from error
