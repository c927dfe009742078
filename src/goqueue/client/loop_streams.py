"""Connections of the running event loop, or of the network that a simulation gives."""

import asyncio
import selectors

from goqueue.ports.network import LoopNetwork, Network

READ_BYTES = 64 * 1024


class LoopStreams:
    def __init__(self, network: Network | None = None) -> None:
        self._network = network or LoopNetwork()

    async def connect(self, host: str, port: int, within_s: float) -> "LoopStream":
        async with asyncio.timeout(within_s):
            return await self._connect(host, port)

    async def _connect(self, host: str, port: int) -> "LoopStream":
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await self._network.connect(lambda: protocol, host, port)
        return LoopStream(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


class LoopStream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def is_quiet(self) -> bool:
        if self._writer.is_closing() or self._reader.at_eof():
            return False
        its_socket = self._writer.get_extra_info("socket")
        if its_socket is None:  # a network that is no kernel's holds nothing back
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(its_socket, selectors.EVENT_READ)
            return not selector.select(0)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self, within_s: float) -> bytes:
        async with asyncio.timeout(within_s):
            return await self._reader.read(READ_BYTES)

    def close(self) -> None:
        self._writer.close()

    async def closed(self) -> None:
        try:
            await self._writer.wait_closed()
        except OSError:
            return
