/** What the broker refused, or why it could not be asked. */
export class GoQueueError extends Error {
  constructor(
    message: string,
    /** Of HTTP; 0: there was no answer. */
    readonly status: number,
    /** The broker's own, such as UNKNOWN_TOPIC_OR_PARTITION. */
    readonly code: string,
    /** An earlier attempt may have been done, though no answer came. */
    readonly askedAgain = false,
  ) {
    super(message);
    this.name = "GoQueueError";
  }

  get isNotFound(): boolean {
    return this.status === 404;
  }

  get isDenied(): boolean {
    return this.status === 401 || this.status === 403;
  }

  /** Somebody else is this producer by now. */
  get isFenced(): boolean {
    return this.code === "PRODUCER_FENCED" || this.code === "INVALID_PRODUCER_EPOCH";
  }

  /** The lease is over: the message is delivered again. */
  get isLeaseLost(): boolean {
    return this.status === 410 || this.code === "ALREADY_SETTLED" || this.code === "UNKNOWN_RECEIPT";
  }

  /** It was sent and never answered: it may have been done. */
  get maybeDone(): boolean {
    return this.status === 0 || this.status === 504;
  }

  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 503;
  }
}

/** Thrown by a handler: the job is a dead letter now. */
export class Reject extends Error {}

/** Thrown by a handler: the job comes again after so long, instead of the backoff of its topic. */
export class RetryAfter extends Error {
  constructor(
    readonly delay: string | number,
    reason = "",
  ) {
    super(reason);
  }
}
