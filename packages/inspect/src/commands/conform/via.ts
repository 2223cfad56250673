import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { connectSocket, dialFixed } from 'rocev2/internal/cm';
import { RoceError } from 'rocev2/internal/core';
import { systemRandom } from 'rocev2/internal/driver';
import { PERFTEST_TCP_PORT, PerftestExchange, tcpWire } from 'rocev2/internal/stock-exchanges';
import { AgentConnector, type AgentLink } from '../../conform/agent-connector.js';
import { CmConnector } from '../../conform/cm-connector.js';
import { Management } from '../../conform/management.js';
import type { Connector, Via } from '../../conform/peer.js';
import { type OpenExchange, PerftestConnector } from '../../conform/perftest-connector.js';
import type { TestWire } from '../../conform/wire.js';

export const CONFORM_PORT = 18526;
const AGENT_PORT = 18527;
/** A port of RDMA_PS_TCP on which nobody listens: tcpmux, which no service of RDMA uses. */
const IDLE_PORT = 1;

export const VIAS: readonly Via[] = ['cm', 'perftest', 'agent'];
/** A server of perftest begins again a moment after it has ended. */
const PERFTEST_ATTEMPTS = 50;
const PERFTEST_INTERVAL_MS = 100;

export function defaultPort(via: Via): number {
  return { cm: CONFORM_PORT, perftest: PERFTEST_TCP_PORT, agent: AGENT_PORT }[via];
}

export interface OpenConnector extends AsyncDisposable {
  readonly connector: Connector;
}

export async function openConnector(
  via: Via,
  wire: TestWire,
  { host, port }: { host: string; port: number },
): Promise<OpenConnector> {
  const random = systemRandom();
  if (via === 'agent') {
    const link = await AgentSocket.open(host, port);
    return { connector: new AgentConnector(link, wire, random), [Symbol.asyncDispose]: async () => link.close() };
  }
  if (via === 'perftest') {
    const open: OpenExchange = (pathMtu) => openExchange(host, port, pathMtu);
    return { connector: new PerftestConnector(open, wire, random), [Symbol.asyncDispose]: async () => {} };
  }
  const connector = new CmConnector(new Management(wire, random), { port, idlePort: IDLE_PORT });
  return { connector, [Symbol.asyncDispose]: async () => {} };
}

async function openExchange(host: string, port: number, pathMtu: number): Promise<PerftestExchange> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await PerftestExchange.open(tcpWire(await dialFixed(host, port)), 'client', { pathMtu });
    } catch (error) {
      if (attempt === PERFTEST_ATTEMPTS) throw error;
      await delay(PERFTEST_INTERVAL_MS);
    }
  }
}

class AgentSocket implements AgentLink {
  readonly #socket: Awaited<ReturnType<typeof connectSocket>>;
  readonly #lines: AsyncIterator<string>;

  private constructor(socket: Awaited<ReturnType<typeof connectSocket>>) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('error', () => {});
    this.#lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  }

  static async open(host: string, port: number): Promise<AgentSocket> {
    const socket = await connectSocket(host, port).catch((cause: Error) => {
      throw new RoceError(
        'ERR_ROCE_CONNECT',
        `no agent listens on TCP port ${port} of ${host}`,
        'there: rocev2 conform agent > agent.c; cc -o agent agent.c -libverbs; ./agent',
        { cause },
      );
    });
    return new AgentSocket(socket);
  }

  async ask(line: string): Promise<string> {
    this.#socket.write(`${line}\n`);
    const { value, done } = await this.#lines.next();
    if (done === true) {
      throw new RoceError('ERR_ROCE_CONNECT', 'the agent is gone', 'read its output, and start it again');
    }
    return value;
  }

  close(): void {
    this.#socket.destroy();
  }
}
