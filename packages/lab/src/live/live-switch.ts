import { RoceError } from 'rocev2/internal/core';
import { parseUdpEndpoint, type UdpEndpoint } from 'rocev2/internal/dgram-ext';
import type { SwitchOptions } from '../switch/switch.js';
import type { SwitchSnapshot } from '../switch/switch-snapshot.js';
import { DatagramLink } from './datagram-link.js';
import { LinkedSwitch, type LiveSwitchPortCounters } from './linked-switch.js';

export interface LiveSwitchPort {
  readonly name: string;
  readonly local: UdpEndpoint;
  readonly remote?: UdpEndpoint;
}

export interface LiveSwitchOptions extends Omit<SwitchOptions, 'ports'> {
  readonly ports: readonly LiveSwitchPort[];
}

export interface LiveSwitch {
  readonly counters: Readonly<Record<string, LiveSwitchPortCounters>>;
  snapshot(): SwitchSnapshot;
  local(name: string): UdpEndpoint;
  close(): Promise<void>;
}

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
