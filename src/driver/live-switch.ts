/**
 * The software switch on UDP sockets: one socket a port, one Ethernet frame a datagram, as QEMU's `-netdev dgram` and GNS3 speak it. The
 * switching is src/switch; this file moves bytes and keeps each port to its link rate.
 *
 * Invariants: a port listens to one peer, the one named or, without a name, the first on this host that speaks to it; a frame's slot is
 * released only when the kernel has taken the datagram.
 */

import type { RemoteInfo, Socket } from 'node:dgram';
import { RoceError } from '../core/errors.js';
import { bindSocket, closeSocket, DEFAULT_SOCKET_BUFFER_BYTES } from '../dgram-ext/bound-socket.js';
import { parseUdpEndpoint, type UdpEndpoint } from '../dgram-ext/udp-endpoint.js';
import { Switch, type SwitchOptions } from '../switch/switch.js';
import type { SwitchPortCounters } from '../switch/switch-counters.js';
import type { SwitchSnapshot } from '../switch/switch-snapshot.js';
import { LinkPacer } from './link-pacer.js';
import { nowNs, timeoutMs } from './system-clock.js';

/** One port of the switch. */
export interface LiveSwitchPort {
  /** Letters, digits, dots, dashes and underscores, as fault rules and routes name it. */
  readonly name: string;
  /** Where its socket is bound. */
  readonly local: UdpEndpoint;
  /** Without it, whoever on this host speaks first. */
  readonly remote?: UdpEndpoint;
}

/** Settings of the switch, and sockets for its ports. */
export interface LiveSwitchOptions extends Omit<SwitchOptions, 'ports'> {
  /** Two or more, of different names. */
  readonly ports: readonly LiveSwitchPort[];
}

/** What the switch counts, and what only its sockets know. */
export interface LiveSwitchPortCounters extends SwitchPortCounters {
  /** Datagrams from somebody else than the port's peer; not part of `rx_packets`. */
  rx_strangers: number;
  /** Frames that the kernel refused, or that had no peer to go to; part of `tx_packets`. */
  tx_errors: number;
}

/** A switch that runs until it is closed. */
export interface LiveSwitch {
  /** By port name. */
  readonly counters: Readonly<Record<string, LiveSwitchPortCounters>>;
  /** Queues and pools, now and at most. */
  snapshot(): SwitchSnapshot;
  /** Where the port's socket is bound. Throws ERR_ROCE_NOT_FOUND. */
  local(name: string): UdpEndpoint;
  /** Closes every socket; frames that wait are dropped. Safe to call twice. */
  close(): Promise<void>;
}

/** `name=localHost:localPort[,remoteHost:remotePort]`. Throws ERR_ROCE_MALFORMED. */
export function parseSwitchPort(text: string): LiveSwitchPort {
  const parts = /^([^=]+)=([^,]+)(?:,([^,]+))?$/.exec(text);
  if (parts === null) {
    throw new RoceError(
      'ERR_ROCE_MALFORMED',
      `'${text}' is not a switch port`,
      'write NAME=HOST:PORT or NAME=HOST:PORT,REMOTEHOST:REMOTEPORT',
    );
  }
  const local = parseUdpEndpoint(parts[2]);
  return parts[3] === undefined
    ? { name: parts[1], local }
    : { name: parts[1], local, remote: parseUdpEndpoint(parts[3]) };
}

/** Binds every port and starts to switch. Rejects with ERR_ROCE_IO when a socket is taken; then nothing stays open. */
export async function openLiveSwitch(options: LiveSwitchOptions): Promise<LiveSwitch> {
  const { ports, ...rest } = options;
  const live = new UdpSwitch(new Switch({ ...rest, ports: ports.map(({ name }) => name) }));
  try {
    for (const port of ports) {
      const rateBps = rest.portConfig?.[port.name]?.rateBps ?? rest.portDefaults?.rateBps;
      await live.add(port, new LinkPacer(rateBps ?? Number.POSITIVE_INFINITY));
    }
  } catch (error) {
    await live.close();
    throw error;
  }
  return live;
}

class UdpSwitchPort {
  readonly name: string;
  readonly local: UdpEndpoint;
  readonly socket: Socket;
  readonly pacer: LinkPacer;
  /** Slots the kernel has not taken yet. */
  readonly unsent: number[] = [];
  remoteHost: string | undefined;
  remotePort = 0;
  strangers = 0;
  errors = 0;

  constructor(name: string, local: UdpEndpoint, socket: Socket, pacer: LinkPacer, remote: UdpEndpoint | undefined) {
    this.name = name;
    this.local = local;
    this.socket = socket;
    this.pacer = pacer;
    this.remoteHost = remote?.host.text;
    this.remotePort = remote?.port ?? 0;
  }

  readonly onSent = (error: Error | null): void => {
    if (error !== null) this.errors++;
  };

  isPeer(from: RemoteInfo): boolean {
    if (this.remoteHost === undefined && (from.address === '::1' || from.address.startsWith('127.'))) {
      this.remoteHost = from.address;
      this.remotePort = from.port;
    }
    return from.address === this.remoteHost && from.port === this.remotePort;
  }
}

class UdpSwitch implements LiveSwitch {
  readonly #switch: Switch;
  readonly #ports: UdpSwitchPort[] = [];
  #timer: NodeJS.Timeout | undefined;
  #timerNs = Number.POSITIVE_INFINITY;
  #closing: Promise<void> | undefined;

  constructor(engine: Switch) {
    this.#switch = engine;
  }

  async add({ name, local, remote }: LiveSwitchPort, pacer: LinkPacer): Promise<void> {
    const bound = await bindSocket({
      address: local.host,
      udpPort: local.port,
      receiveBufferBytes: DEFAULT_SOCKET_BUFFER_BYTES,
      sendBufferBytes: DEFAULT_SOCKET_BUFFER_BYTES,
      native: true,
    });
    const number = this.#ports.length;
    const port = new UdpSwitchPort(name, { host: local.host, port: bound.udpPort }, bound.socket, pacer, remote);
    this.#ports.push(port);
    bound.socket.on('error', () => port.errors++);
    bound.socket.on('message', (bytes, from) => {
      if (this.#closing !== undefined) return;
      if (!port.isPeer(from)) {
        port.strangers++;
        return;
      }
      const now = nowNs();
      this.#switch.receive(number, bytes, 0, bytes.length, now);
      this.#turn(now);
    });
  }

  snapshot(): SwitchSnapshot {
    return this.#switch.snapshot(nowNs());
  }

  get counters(): Readonly<Record<string, LiveSwitchPortCounters>> {
    const counters = this.#switch.counters;
    return Object.fromEntries(
      this.#ports.map(({ name, strangers, errors }) => [
        name,
        { ...counters[name], rx_strangers: strangers, tx_errors: errors },
      ]),
    );
  }

  local(name: string): UdpEndpoint {
    const port = this.#ports.find((candidate) => candidate.name === name);
    if (port === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `the switch has no port '${name}'`);
    return port.local;
  }

  close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#closing ??= Promise.all(this.#ports.map(({ socket }) => closeSocket(socket))).then(() => {});
    return this.#closing;
  }

  /** Does what is due: deadlines of the switch, links that have become free, ports that have become ready. */
  #turn(now: number): void {
    if (this.#switch.nextDeadlineNs <= now) this.#switch.onDeadline(now);
    for (let port = 0; port < this.#ports.length; port++)
      if (this.#ports[port].pacer.nextNs <= now) this.#drain(port, now);
    // A frame that leaves may let the sender of another port go on.
    for (let port = this.#switch.nextReady(); port >= 0; port = this.#switch.nextReady()) this.#drain(port, now);
    let nextNs = this.#switch.nextDeadlineNs;
    for (const { pacer } of this.#ports) nextNs = Math.min(nextNs, pacer.nextNs);
    this.#wakeAt(nextNs, now);
  }

  #wakeAt(timeNs: number, now: number): void {
    // A timer that fires early only finds that nothing is due.
    if (timeNs >= this.#timerNs) return;
    clearTimeout(this.#timer);
    this.#timerNs = timeNs;
    this.#timer = setTimeout(this.#onTimer, timeoutMs(timeNs - now));
  }

  readonly #onTimer = (): void => {
    this.#timerNs = Number.POSITIVE_INFINITY;
    this.#turn(nowNs());
  };

  /** Sends what a port has and its link has room for. */
  #drain(number: number, now: number): void {
    const port = this.#ports[number];
    const { pacer } = port;
    if (port.unsent.length > 0 && port.socket.getSendQueueCount() === 0) this.#releaseAll(port.unsent);
    while (pacer.mayStart(now)) {
      const slot = this.#switch.take(number, now);
      if (slot < 0) {
        pacer.idle();
        break;
      }
      pacer.sent(this.#switch.slotLength(slot));
      port.unsent.push(slot);
      if (port.remoteHost === undefined) port.errors++;
      else port.socket.send(this.#switch.frame(slot), port.remotePort, port.remoteHost, port.onSent);
    }
    if (port.unsent.length > 0 && port.socket.getSendQueueCount() === 0) this.#releaseAll(port.unsent);
  }

  #releaseAll(slots: number[]): void {
    for (const slot of slots) this.#switch.release(slot);
    slots.length = 0;
  }
}
