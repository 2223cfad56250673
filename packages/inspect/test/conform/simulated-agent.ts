/** An agent over our own verbs, in virtual time: it answers the lines that src/cli/conform/agent.c answers. */

import { IpAddress } from '../../../../src/packet/address.js';
import { Access } from '../../../../src/verbs/access.js';
import type { RdmaDevice } from '../../../../src/verbs/device.js';
import type { MemoryRegion } from '../../../../src/verbs/memory-region.js';
import type { ProtectionDomain } from '../../../../src/verbs/protection-domain.js';
import type { QueuePair } from '../../../../src/verbs/queue-pair.js';
import type { AgentLink } from '../../src/conform/agent-connector.js';

const RECEIVES = 4;
const ORDERS_MAX = 16;
const RNR_TIMER = 6;

type Fields = (name: string) => string;

interface Memory {
  readonly pd: ProtectionDomain;
  readonly open: MemoryRegion;
  readonly readOnly: MemoryRegion;
  readonly foreign: MemoryRegion;
  readonly receives: MemoryRegion;
}

/** Answers lines by making queue pairs on a device. */
export class SimulatedAgent implements AgentLink {
  readonly #device: RdmaDevice;
  readonly #memory: Memory;
  #qp: QueuePair | undefined;

  private constructor(device: RdmaDevice, memory: Memory) {
    this.#device = device;
    this.#memory = memory;
  }

  static async create(device: RdmaDevice): Promise<SimulatedAgent> {
    const pd = await device.createPd();
    const foreignPd = await device.createPd();
    return new SimulatedAgent(device, {
      pd,
      open: await pd.regMr(65_536, Access.REMOTE_ALL | Access.FLUSH_GLOBAL),
      readOnly: await pd.regMr(4096, Access.LOCAL_WRITE | Access.REMOTE_READ),
      foreign: await foreignPd.regMr(4096, Access.REMOTE_ALL),
      receives: await pd.regMr(8192, Access.LOCAL_WRITE),
    });
  }

  async ask(line: string): Promise<string> {
    const [verb, ...words] = line.split(' ');
    const values = new Map(words.map((word) => word.split('=') as [string, string]));
    const fields: Fields = (name) => values.get(name)!;
    switch (verb) {
      case 'connect':
        return this.#connect(fields);
      case 'post':
        return this.#post(fields);
      case 'disconnect':
        await this.#qp?.close();
        this.#qp = undefined;
        return 'ok';
      default:
        return 'error unknown verb';
    }
  }

  async #connect(fields: Fields): Promise<string> {
    const { pd, open, readOnly, foreign, receives } = this.#memory;
    const number = (name: string) => Number(fields(name));
    const mtu = number('mtu');
    const cq = await this.#device.createCq(RECEIVES + ORDERS_MAX);
    const qp = await pd.createQp({ sendCq: cq, maxSendWr: ORDERS_MAX, maxRecvWr: RECEIVES });
    this.#qp = qp;
    await qp.modify({
      state: 'INIT',
      pkeyIndex: 0,
      port: 1,
      accessFlags: number('closed') === 1 ? 0 : Access.REMOTE_ALL | Access.FLUSH_GLOBAL,
    });
    for (let i = 0; i < RECEIVES; i++) qp.postRecv({ sges: [receives.sge(0, 2 * mtu)] });
    await qp.modify({
      state: 'RTR',
      av: { address: IpAddress.fromBytes(Buffer.from(fields('gid'), 'hex')) },
      pathMtu: mtu,
      destQpn: number('qpn'),
      rqPsn: number('psn'),
      maxDestRdAtomic: number('depth'),
      minRnrTimer: RNR_TIMER,
    });
    await qp.modify({
      state: 'RTS',
      sqPsn: number('peer_psn'),
      timeout: number('timeout'),
      retryCnt: number('retry'),
      rnrRetry: number('rnr_retry'),
      maxRdAtomic: number('initiator'),
    });
    const facts = {
      qpn: qp.qpn,
      depth: number('depth'),
      rnr_timer: RNR_TIMER,
      receives: RECEIVES,
      receive_bytes: 2 * mtu,
      flush: 1,
    };
    const keys = {
      open: open.addr,
      open_key: open.rkey,
      open_bytes: open.length,
      read_only: readOnly.addr,
      read_only_key: readOnly.rkey,
      foreign: foreign.addr,
      foreign_key: foreign.rkey,
    };
    return ['ok', ...Object.entries({ ...facts, ...keys }).map(([name, value]) => `${name}=${value}`)].join(' ');
  }

  #post(fields: Fields): string {
    const { open } = this.#memory;
    const operation = fields('operation');
    const sges = [open.sge(0, Number(fields('bytes')))];
    const remote = { remoteAddr: BigInt(fields('address')), rkey: Number(fields('key')) };
    for (let i = 0; i < Number(fields('count')); i++) {
      if (operation === 'SEND') this.#qp!.postSend({ opcode: 'SEND', sges });
      else this.#qp!.postSend({ opcode: operation as 'RDMA_WRITE' | 'RDMA_READ', sges, ...remote });
    }
    return 'ok';
  }
}
