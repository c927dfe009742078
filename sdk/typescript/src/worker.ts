import { GoQueueError, Reject, RetryAfter } from "./errors.js";
import { pause, type Http } from "./http.js";
import { Message } from "./message.js";
import type { components } from "./openapi.js";

type Schemas = components["schemas"];

export interface WorkerOptions {
  group: string;
  concurrency?: number;
  /** In ms; extended at a third of it. */
  lease?: number;
  /** How long one lease is extended at most, in ms. */
  hold?: number;
  /** Where a group begins that is new. */
  start?: "earliest" | "latest";
  /** Told of jobs whose lease was lost, or that could not be settled: they are delivered again. */
  onLost?: (job: Job, error: unknown) => void;
}

export class Job extends Message {
  /** 1 for the first delivery. */
  readonly attempt: number;
  readonly receipt: string;

  constructor(told: Schemas["ReceivedMessage"]) {
    super(told.topic, told);
    this.attempt = told.delivery_count;
    this.receipt = told.receipt_handle;
  }
}

/** Returns: done. Throws: again later; Reject and RetryAfter say what else. The signal is for a lease that was lost. */
export type Handler = (job: Job, signal: AbortSignal) => Promise<void> | void;

const WAIT_MS = 20_000;
const ACKS_MAX = 500;
const REASON_MAX = 1000;

/** Reads a topic as a queue: messages are leased to it, handled, and settled one by one. */
export class Worker {
  private readonly ended = new AbortController();
  private readonly concurrency: number;
  private readonly lease: number;
  private acks: Job[] = [];
  private acking: Promise<void> | undefined;

  constructor(
    private readonly http: Http,
    private readonly topic: string,
    private readonly options: WorkerOptions,
  ) {
    this.concurrency = options.concurrency ?? 1;
    this.lease = options.lease ?? 30_000;
  }

  /** Jobs at work are finished. */
  stop(): void {
    this.ended.abort();
  }

  /** Until `stop`, or until the broker refuses it. */
  async run(handle: Handler): Promise<void> {
    const running = new Set<Promise<void>>();
    let refused: unknown;
    for (let attempt = 0; !this.ended.signal.aborted && !this.http.options.signal?.aborted; attempt++) {
      try {
        while (running.size >= this.concurrency) await Promise.race(running);
        for (const job of await this.receive(this.concurrency - running.size)) {
          const one = this.work(job, handle).finally(() => running.delete(one));
          running.add(one);
        }
        attempt = 0;
      } catch (error) {
        if (this.ended.signal.aborted) break;
        if (!(error instanceof GoQueueError) || !error.isPassing) {
          refused = error;
          break;
        }
        await pause(this.http.pauseMs(attempt), this.ended.signal);
      }
    }
    await Promise.all(running);
    while (this.acking) await this.acking;
    if (refused) throw refused;
  }

  private async receive(room: number): Promise<Job[]> {
    const body: Schemas["ReceiveMessages"] = {
      group: this.options.group,
      max_messages: room,
      lease: this.lease,
      wait: WAIT_MS,
      start: this.options.start ?? null,
    };
    const path = `/topics/${encodeURIComponent(this.topic)}/receive`;
    const told = await this.http.ask<Schemas["ReceivedMessages"]>("POST", path, body, false, WAIT_MS, this.ended.signal);
    return told.messages.map((each) => new Job(each));
  }

  private async work(job: Job, handle: Handler): Promise<void> {
    const lost = new AbortController();
    const since = Date.now();
    const timer = setInterval(() => {
      if (Date.now() - since > (this.options.hold ?? 3_600_000)) return;
      const body: Schemas["Visibility"] = { receipt_handle: job.receipt, timeout: this.lease };
      this.http.ask("POST", "/messages/visibility", body, true).catch((error: unknown) => {
        if (error instanceof GoQueueError && error.isLeaseLost && !lost.signal.aborted) {
          lost.abort(error);
          this.tellLost(job, error);
        }
      });
    }, this.lease / 3);
    try {
      await handle(job, lost.signal);
      clearInterval(timer);
      if (!lost.signal.aborted) this.acknowledge(job);
    } catch (error) {
      clearInterval(timer);
      if (!lost.signal.aborted) await this.refuse(job, error);
    }
  }

  private async refuse(job: Job, thrown: unknown): Promise<void> {
    const reason = (thrown instanceof Error ? thrown.message : String(thrown)).slice(0, REASON_MAX) || null;
    const body: Schemas["Nack"] = { receipt_handle: job.receipt, reason };
    if (thrown instanceof RetryAfter) body.delay = thrown.delay;
    try {
      await this.http.ask("POST", thrown instanceof Reject ? "/messages/reject" : "/messages/nack", body, true);
    } catch (error) {
      const isDone = error instanceof GoQueueError && error.askedAgain && error.code === "ALREADY_SETTLED";
      if (!isDone) this.tellLost(job, error);
    }
  }

  /** An error of `onLost` is its own: thrown on, it would end the acknowledging of all other jobs, or the process. */
  private tellLost(job: Job, error: unknown): void {
    try {
      this.options.onLost?.(job, error);
    } catch (thrown) {
      console.error("goqueue: onLost has thrown", thrown);
    }
  }

  /** Those that come while the last ones are on their way go together. */
  private acknowledge(job: Job): void {
    this.acks.push(job);
    this.acking ??= this.sendAcks();
  }

  private async sendAcks(): Promise<void> {
    await Promise.resolve();
    while (this.acks.length > 0) {
      const jobs = this.acks.splice(0, ACKS_MAX);
      try {
        const body: Schemas["SettleAll"] = { receipt_handles: jobs.map((each) => each.receipt) };
        const told = await this.http.ask<Schemas["SettledAll"]>("POST", "/messages/ack/batch", body, true);
        told.results.forEach((each, at) => {
          // One that was settled before: an attempt whose answer was lost.
          if (!each.success && each.code !== "ALREADY_SETTLED") this.tellLost(jobs[at]!, each);
        });
      } catch (error) {
        for (const each of jobs) this.tellLost(each, error);
      }
    }
    this.acking = undefined;
  }
}
