/** The software switch on UDP sockets: one link of datagrams a port. */

import { RoceError } from 'rocev2/internal/core';
import { parseUdpEndpoint, type UdpEndpoint } from 'rocev2/internal/dgram-ext';
import type { SwitchOptions } from '../switch/switch.js';
import type { SwitchSnapshot } from '../switch/switch-snapshot.js';
import { DatagramLink } from './datagram-link.js';
import { LinkedSwitch, type LiveSwitchPortCounters } from './linked-switch.js';

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
  const ports: Array<{ readonly name: string; readonly link: DatagramLink }> = [];
  try {
    for (const { name, local, remote } of options.ports) {
      ports.push({ name, link: await DatagramLink.open(local, remote) });
    }
    const linked = new LinkedSwitch({ ...options, ports });
    return {
      get counters() {
        return linked.counters;
      },
      snapshot: () => linked.snapshot(),
      local: (wanted) => {
        const port = ports.find(({ name }) => name === wanted);
        if (port === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `the switch has no port '${wanted}'`);
        return port.link.local;
      },
      close: () => linked.close(),
    };
  } catch (error) {
    for (const { link } of ports) await link.close();
    throw error;
  }
}
