/**
 * Bounds: at most `streamsMax` streams; one that has had no connection for `keepNs` ends; a connection that names no
 * stream in time is closed.
 */

import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_S } from '../../core/units.js';
import type { StreamLink } from './stream-link.js';
import { type StreamTerms, SuStream } from './su-stream.js';
import { decodeResume, encodeWindow, type StreamFrame } from './su-stream-frame.js';

/** Terms of all streams of a server. */
export interface StreamAcceptorOptions extends StreamTerms {
  /** How long a stream waits for its client to come back. Default 60 s. */
  readonly keepNs?: number | undefined;
  /** Most streams at a time. Default 1024. */
  readonly streamsMax?: number | undefined;
}

interface Kept {
  readonly stream: SuStream;
  epoch: number;
  cancelEnd: () => void;
}

const KEEP_NS = 60 * NS_PER_S;
const STREAMS_MAX = 1024;
const FIRST_FRAME_NS = 10 * NS_PER_S;

export class StreamAcceptor {
  readonly #clock: Clock;
  readonly #options: StreamAcceptorOptions;
  readonly #onStream: (stream: SuStream) => void;
  readonly #streams = new Map<string, Kept>();
  readonly #pending = new Set<StreamLink>();

  constructor(clock: Clock, onStream: (stream: SuStream) => void, options: StreamAcceptorOptions = {}) {
    this.#clock = clock;
    this.#onStream = onStream;
    this.#options = options;
  }

  get streams(): number {
    return this.#streams.size;
  }

  serves(link: StreamLink): boolean {
    return !this.#pending.has(link);
  }

  accept(link: StreamLink): void {
    this.#pending.add(link);
    const cancel = this.#clock.wakeAt(this.#clock.nowNs() + FIRST_FRAME_NS, () => this.#drop(link));
    link.onFailure = () => {
      cancel();
      this.#drop(link);
    };
    link.onFrame = (frame, body) => {
      if (frame.type === 'PING') {
        void link.send({ type: 'PONG', offset: 0, consumed: 0 }, body);
        return;
      }
      cancel();
      this.#pending.delete(link);
      void this.#resume(link, frame, body);
    };
  }

  async close(): Promise<void> {
    for (const link of this.#pending) await link.close();
    this.#pending.clear();
    for (const { stream, cancelEnd } of this.#streams.values()) {
      cancelEnd();
      await stream.close();
    }
    this.#streams.clear();
  }

  async #resume(link: StreamLink, frame: StreamFrame, body: Buffer): Promise<void> {
    const request = frame.type === 'RESUME' ? decodeResume(body) : undefined;
    if (request === undefined) return this.#drop(link);
    const id = request.id.toString('hex');
    const kept = this.#streams.get(id) ?? (request.mayBegin ? this.#begin(id) : undefined);
    if (kept === undefined) {
      await link.send({ type: 'REFUSED', offset: 0, consumed: 0 });
      return this.#drop(link);
    }
    const { stream } = kept;
    const peer = { received: frame.offset, consumed: frame.consumed, windowBytes: request.windowBytes };
    const why = stream.isEnded ? undefined : stream.whyImpossible(peer);
    if (why !== undefined) stream.fail(why);
    if (stream.isEnded) {
      // Its end was lost with the last connection.
      const answer = stream.isOver ? 'RESUMED' : 'REFUSED';
      await link.send({ type: answer, ...stream.progress }, encodeWindow(stream.windowBytes));
      return this.#drop(link);
    }
    if (request.epoch <= kept.epoch) return this.#drop(link);
    kept.epoch = request.epoch;
    kept.cancelEnd();
    let failure: Error | undefined;
    link.onFrame = () => link.fail(new RoceError('ERR_ROCE_MISMATCH', 'a frame came too early'));
    link.onFailure = (error) => {
      failure = error;
    };
    // No data of the old connection may be accepted once the client knows this side's position.
    await stream
      .detach()
      ?.close()
      .catch(() => {});
    if (kept.epoch !== request.epoch) return this.#drop(link);
    if (failure !== undefined || stream.isEnded) {
      this.#drop(link);
      this.#waitForClient(id, kept);
      return;
    }
    const { progress } = stream;
    void link.send({ type: 'RESUMED', ...progress }, encodeWindow(stream.windowBytes));
    stream.attach(link, peer, progress.consumed);
  }

  #begin(id: string): Kept | undefined {
    const { streamsMax = STREAMS_MAX, keepNs: _, streamsMax: __, ...terms } = this.#options;
    if (this.#streams.size >= streamsMax) return undefined;
    const stream = new SuStream(this.#clock, terms);
    const kept: Kept = { stream, epoch: -1, cancelEnd: () => {} };
    this.#streams.set(id, kept);
    stream.onClosed = () => this.#waitForClient(id, kept);
    stream.onLost = (link) => {
      void link.close().catch(() => {});
      this.#waitForClient(id, kept);
    };
    this.#onStream(stream);
    return kept;
  }

  /**
   * The client may reconnect, also to learn of the end. Otherwise the stream has failed, unless both sides had ended
   * it.
   */
  #waitForClient(id: string, kept: Kept): void {
    const { keepNs = KEEP_NS } = this.#options;
    kept.cancelEnd();
    kept.cancelEnd = this.#clock.wakeAt(this.#clock.nowNs() + keepNs, () => {
      this.#streams.delete(id);
      kept.stream.fail(new RoceError('ERR_ROCE_CONNECT', `the client was away for ${keepNs / NS_PER_S} s`));
    });
  }

  #drop(link: StreamLink): void {
    this.#pending.delete(link);
    void link.close().catch(() => {});
  }
}
