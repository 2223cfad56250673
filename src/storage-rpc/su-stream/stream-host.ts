import type { Clock } from '../../core/clock.js';
import { HostSessions, type HostSessionsOptions } from '../session/host-sessions.js';
import { ClientStream } from './client-stream.js';
import type { StreamLink } from './stream-link.js';
import type { StreamTerms, SuStream } from './su-stream.js';
import { STREAM_BODY_BYTES_MAX } from './su-stream-frame.js';

export interface StreamHostOptions extends HostSessionsOptions<StreamLink> {
  readonly stream?: StreamTerms;
}

const PINGS_EACH = 16;
const PING_BYTES = [4096, STREAM_BODY_BYTES_MAX] as const;
const PROBE_NS = 3e9;

export class StreamHost extends HostSessions<StreamLink, ClientStream> {
  readonly #options: StreamHostOptions;

  constructor(options: StreamHostOptions) {
    super(options);
    this.#options = options;
  }

  async stream(): Promise<SuStream> {
    const { session } = await this.open();
    session.stream.onClosed = () => this.forget(session);
    return session.stream;
  }

  protected override newSession(): ClientStream {
    const { clock, random, stream } = this.#options;
    return new ClientStream(clock, random, stream);
  }

  protected override async probe(link: StreamLink): Promise<number> {
    const { clock } = this.#options;
    try {
      let slowestNs = 0;
      for (const bytes of PING_BYTES) {
        for (let i = 0; i < PINGS_EACH; i++) {
          const startNs = clock.nowNs();
          await ping(link, Buffer.alloc(bytes, i), clock);
          slowestNs = Math.max(slowestNs, clock.nowNs() - startNs);
        }
      }
      return slowestNs;
    } finally {
      await link.close();
    }
  }
}

async function ping(link: StreamLink, body: Buffer, clock: Clock): Promise<void> {
  let cancel: () => void = () => {};
  try {
    await new Promise<void>((resolve, reject) => {
      cancel = clock.wakeAt(clock.nowNs() + PROBE_NS, () => reject(new Error('a probe was not answered')));
      link.onFailure = reject;
      link.onFrame = ({ type }, answer) => {
        if (type === 'PONG' && answer.equals(body)) resolve();
        else reject(new Error('a probe was answered with something else'));
      };
      void link.send({ type: 'PING', offset: 0, consumed: 0 }, body);
    });
  } finally {
    cancel();
  }
}
