import { GoQueueError } from "./errors.js";

export interface Options {
  apiKey?: string;
  /** For an admin of the cluster who acts for a tenant. */
  tenant?: string;
  /** A call is made `attempts` times at most, with growing pauses. */
  retry?: { attempts?: number; firstMs?: number; longestMs?: number };
  /** Of a call that does not wait for messages, with all its attempts. */
  timeoutMs?: number;
  /** Ends everything. */
  signal?: AbortSignal;
  /** Another fetch, such as one with an authority of its own for TLS. */
  fetch?: typeof fetch;
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}

/** Calls on the connections that fetch keeps, made again where that is harmless. */
export class Http {
  readonly options: Options;
  private readonly base: string;
  private readonly attempts: number;

  constructor(url: string, options: Options) {
    this.base = url.replace(/\/+$/, "") + "/v1";
    this.options = options;
    this.attempts = options.retry?.attempts ?? 8;
  }

  /** Twice as long each time, with dice, so that clients do not come back all at once. */
  pauseMs(attempt: number): number {
    const { firstMs = 50, longestMs = 2000 } = this.options.retry ?? {};
    return Math.min(longestMs, firstMs * 2 ** Math.min(attempt, 20)) * (0.5 + Math.random() / 2);
  }

  async open(method: string, path: string, body: unknown, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = {};
    if (body !== undefined) headers["content-type"] = "application/json";
    if (this.options.apiKey) headers["authorization"] = `Bearer ${this.options.apiKey}`;
    if (this.options.tenant) headers["x-goqueue-tenant"] = this.options.tenant;
    const send = this.options.fetch ?? fetch;
    let response: Response;
    try {
      response = await send(this.base + path, { method, headers, signal, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    } catch (error) {
      throw new GoQueueError(`${method} ${path}: ${String((error as Error).cause ?? error)}`, 0, "NO_ANSWER");
    }
    if (response.ok) return response;
    const told = (await response.json().catch(() => ({}))) as { error?: string; code?: string };
    throw new GoQueueError(told.error ?? response.statusText, response.status, told.code ?? "");
  }

  async ask<Reply>(method: string, path: string, body?: unknown, isSafe = method === "GET", waitMs = 0, ended?: AbortSignal): Promise<Reply> {
    const timeoutMs = (this.options.timeoutMs ?? 30_000) + waitMs;
    const signals = [AbortSignal.timeout(timeoutMs), this.options.signal, ended].filter((each) => each !== undefined);
    const signal = AbortSignal.any(signals);
    for (let attempt = 0; ; attempt++) {
      try {
        const response = await this.open(method, path, body, signal);
        return (await response.json()) as Reply;
      } catch (error) {
        const told = error instanceof GoQueueError ? error : new GoQueueError(String(error), 0, "NO_ANSWER");
        const isLast = attempt + 1 >= this.attempts || signal.aborted;
        if (!isSafe || isLast || !told.isPassing) throw new GoQueueError(told.message, told.status, told.code, attempt > 0);
        await pause(this.pauseMs(attempt), signal);
      }
    }
  }
}
