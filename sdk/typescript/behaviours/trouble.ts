/** The SDK beside servers in a trouble that a real node cannot be brought into at will. Says "fine", or fails. */

import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { GoQueue, type Published } from "../src/index.js";

type Answer = (path: string, body: any, response: ServerResponse) => void;

async function beside(answer: Answer, work: (q: GoQueue) => Promise<void>): Promise<void> {
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (piece: Buffer) => (text += piece.toString()));
    request.on("end", () => answer(request.url!, text ? JSON.parse(text) : undefined, response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await work(new GoQueue(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { retry: { firstMs: 1 } }));
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function reply(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function told(offset: number, value: string): object {
  return { topic: "t", partition: 0, offset, priority: "normal", timestamp: "2026-01-01T00:00:00Z", headers: {}, key: null, value };
}

/** What is no message is not handed out as one. */
async function followingANodeThatStops(): Promise<void> {
  const asked: string[] = [];
  const gaps: unknown[] = [];
  const event = (name: string, data: unknown, id = "") => `${id ? `id: ${id}\n` : ""}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const answer: Answer = (path, _body, response) => {
    asked.push(path);
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (asked.length > 1) return void response.write(event("message", told(7, "two"), "0:8"));
    response.write("retry: 1\n\n" + event("skipped", { partition: 0, from: 0, to: 3 }) + event("message", told(3, "one"), "0:4"));
    response.end(event("end", { reason: "the node stops" }));
  };
  await beside(answer, async (q) => {
    const found: string[] = [];
    for await (const each of q.follow("t", { onSkipped: (gap) => gaps.push(gap) })) {
      found.push(each.text());
      if (found.length === 2) break;
    }
    assert.deepEqual(found, ["one", "two"]);
    assert.deepEqual(gaps, [{ partition: 0, from: 0, to: 3 }]);
    assert.match(asked[1]!, /last_event_id=0%3A4/);
  });
}

/** One lost job, and an `onLost` that throws, do not end the acknowledging of the others. */
async function losingAJobWithABadCallback(): Promise<void> {
  const acknowledged: string[] = [];
  let given = 0;
  const answer: Answer = (path, body, response) => {
    if (path.endsWith("/receive")) {
      given++;
      return reply(response, { messages: [{ ...told(given, "x"), receipt_handle: `r${given}`, delivery_count: 1 }] });
    }
    acknowledged.push(...body.receipt_handles);
    reply(response, { results: body.receipt_handles.map((each: string) => ({ success: each !== "r1", code: "UNKNOWN_RECEIPT" })) });
  };
  await beside(answer, async (q) => {
    const lost: string[] = [];
    const onLost = (job: { receipt: string }) => {
      lost.push(job.receipt);
      throw new Error("as the test wants");
    };
    const worker = q.worker("t", { group: "g", onLost });
    await worker.run(() => {
      if (acknowledged.length >= 2) worker.stop();
    });
    assert.deepEqual(lost, ["r1"]);
    assert.deepEqual(acknowledged.slice(0, 2), ["r1", "r2"]);
  });
}

/** A message that no message can be fails alone, and a request is no larger than a node takes. */
async function producingBadAndLargeMessages(): Promise<void> {
  const batches: number[] = [];
  const answer: Answer = (_path, body, response) => {
    batches.push(body.messages.length);
    reply(response, { results: body.messages.map(() => ({ partition: 0, offset: 0 })) });
  };
  await beside(answer, async (q) => {
    const producer = q.producer("t");
    const results: Promise<Published>[] = [];
    for (let number = 0; number < 4; number++) results.push((await producer.send({ value: "x".repeat(200_000) })).result);
    await assert.rejects(producer.send({ value: { big: 1n } }), TypeError);
    await producer.flush();
    assert.equal((await Promise.all(results)).length, 4);
    assert.deepEqual(batches, [2, 2]);
  });
}

await followingANodeThatStops();
await losingAJobWithABadCallback();
await producingBadAndLargeMessages();
console.log("fine");
