import { GoQueueError } from "./errors.js";
import type { GoQueue } from "./index.js";
import { encoded, type NewMessage, type Published } from "./message.js";
import type { components } from "./openapi.js";

type Encoded = components["schemas"]["NewMessage"];

export interface ProducerOptions {
  /** How long a batch waits for more messages, in ms. */
  linger?: number;
  /** Of one batch. */
  maxMessages?: number;
  /** Of one batch, roughly; a larger message goes alone. Without it 512 KiB. */
  maxBytes?: number;
  /** Messages that are not answered; `send` waits beyond that. */
  maxInFlight?: number;
  /** Gives each message a `dedup_id`, so that what was not answered is sent again. The topic needs `dedup.ms`. */
  once?: boolean;
}

interface Posted {
  message: Encoded;
  resolve: (published: Published) => void;
  reject: (error: unknown) => void;
}

/** Sends messages in batches, one request after the other, so that they stay in order. */
export class Producer {
  private waiting: Posted[] = [];
  private inFlight = 0;
  private room: (() => void)[] = [];
  private running: Promise<void> | undefined;
  /** The first since the last flush. */
  private failure: { error: unknown } | undefined;
  private number = 0;
  private readonly prefix = crypto.randomUUID();

  constructor(
    private readonly client: GoQueue,
    private readonly topic: string,
    private readonly options: ProducerOptions,
  ) {}

  /**
   * Returns when there is room for it; `result` when it is stored. Nobody need wait for that: `flush` tells of failures.
   * Throws what no message can be, so that it fails alone.
   */
  async send(message: NewMessage): Promise<{ result: Promise<Published> }> {
    const made = encoded(message);
    while (this.inFlight >= (this.options.maxInFlight ?? 10_000)) await new Promise<void>((resolve) => this.room.push(resolve));
    this.inFlight++;
    if (this.options.once && !made.dedup_id) made.dedup_id = `${this.prefix}-${this.number++}`;
    const result = new Promise<Published>((resolve, reject) => this.waiting.push({ message: made, resolve, reject }));
    result.catch((error: unknown) => (this.failure ??= { error }));
    this.running ??= this.run();
    return { result };
  }

  /** Returns when all is decided; throws the first failure since the last flush. */
  async flush(): Promise<void> {
    while (this.running) await this.running;
    await Promise.resolve(); // the failures of the last batch are told first
    const failure = this.failure;
    this.failure = undefined;
    if (failure) throw failure.error;
  }

  private async run(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, this.options.linger ?? 5));
    while (this.waiting.length > 0) await this.sendBatch(this.waiting.splice(0, this.fitting()));
    this.running = undefined;
  }

  /** How many of those that wait make a batch: a node refuses a request that is too large with all that is in it. */
  private fitting(): number {
    const { maxMessages = 500, maxBytes = 512 * 1024 } = this.options;
    let bytes = 0;
    for (let count = 0; count < Math.min(this.waiting.length, Math.max(maxMessages, 1)); count++) {
      bytes += sizeOf(this.waiting[count]!.message);
      if (bytes > maxBytes) return Math.max(count, 1);
    }
    return Math.max(maxMessages, 1);
  }

  private async sendBatch(batch: Posted[]): Promise<void> {
    try {
      const results = await this.client.publishEncoded(this.topic, batch.map((each) => each.message));
      batch.forEach((each, at) => {
        const told = results[at]!;
        if (told.error) each.reject(new GoQueueError(told.error, 400, "INVALID_RECORD"));
        else each.resolve(told);
      });
    } catch (error) {
      for (const each of batch) each.reject(error);
    }
    this.inFlight -= batch.length;
    for (const each of this.room.splice(0)) each();
  }
}

function sizeOf({ value, value_base64, key, key_base64, headers }: Encoded): number {
  const texts = [value, value_base64, key, key_base64, ...Object.entries(headers ?? {}).flat()];
  return texts.reduce<number>((sum, each) => sum + (typeof each === "string" ? each.length : 0), 0);
}
