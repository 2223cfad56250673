import { Option } from 'commander';
import { formatHostPort, parseRateBps, RoceError } from 'rocev2/internal/core';
import { parseUdpEndpoint, type UdpEndpoint } from 'rocev2/internal/dgram-ext';
import type { PortOptions } from 'rocev2/internal/driver';
import { prioritiesOfDscps } from 'rocev2/internal/packet';
import { CommandFailure, EXIT_USAGE } from './exit.js';
import { localAddressTowards } from './local-address.js';
import { countOption, portOption, textOption } from './options.js';

export interface FrameWire {
  readonly remote: UdpEndpoint;
  readonly rateBps: number | undefined;
  /** Priorities of single DSCPs. */
  readonly dscpToPriority: Readonly<Record<number, number>> | undefined;
}

export interface FrameFlags {
  readonly frame?: FrameWire;
  readonly bind?: { readonly text: string };
  readonly framePort?: number;
  /** The largest IP packet of the link, in bytes. */
  readonly linkMtu?: number;
}

/** Reads `HOST:PORT[,RATE][,DSCP=PRIORITY...]`. */
const parseFrame = textOption((text): FrameWire => {
  const [remote, ...others] = text.split(',');
  const pairs = others.filter((part) => part.includes('='));
  const [rate, ...rest] = others.filter((part) => !part.includes('='));
  if (rest.length > 0) {
    throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' has two rates`, 'write for example 127.0.0.1:5001,1Gbps,26=3');
  }
  const dscpToPriority = Object.fromEntries(pairs.map(priorityOf));
  prioritiesOfDscps(dscpToPriority);
  return {
    remote: parseUdpEndpoint(remote),
    rateBps: rate === undefined ? undefined : parseRateBps(rate),
    dscpToPriority: pairs.length === 0 ? undefined : dscpToPriority,
  };
});

function priorityOf(text: string): [dscp: number, priority: number] {
  const [, dscp, priority] = /^(\d+)=(\d+)$/.exec(text) ?? [];
  if (dscp !== undefined) return [Number(dscp), Number(priority)];
  throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not a priority of a DSCP`, 'write for example 26=3');
}

/** The option `--frame`: connects the endpoint to a switch. */
export function frameOption(
  description = 'connect to this port of a rocev2 switch or a QEMU guest; options: link rate, and DSCP=PRIORITY as in the switch',
): Option {
  return new Option('--frame <host:port[,option...]>', description).argParser(parseFrame);
}

/** The option `--frame-port`: the UDP port of this end of the wire. */
export function framePortOption(): Option {
  return new Option('--frame-port <port>', 'with --frame: UDP port of this end (default: any)').argParser(portOption);
}

/** The option `--link-mtu`: the largest IP packet of the link, in bytes. */
export function linkMtuOption(): Option {
  const description = 'with --frame: largest IP packet of the link (default: 9000)';
  return new Option('--link-mtu <bytes>', description).argParser(countOption);
}

export async function hostOfWire({ remote }: FrameWire): Promise<string> {
  return (await localAddressTowards(remote.host)).text;
}

export async function frameDeviceOptions(flags: FrameFlags): Promise<Pick<PortOptions, 'frame'>> {
  const { frame, bind, framePort = 0, linkMtu } = flags;
  if (frame === undefined) {
    if (flags.framePort === undefined && linkMtu === undefined) return {};
    throw new CommandFailure(EXIT_USAGE, '--frame-port and --link-mtu need --frame');
  }
  if (bind === undefined) {
    throw new CommandFailure(EXIT_USAGE, '--frame needs --bind: the IP address of this endpoint at the switch');
  }
  const { remote, rateBps, dscpToPriority } = frame;
  return {
    frame: {
      local: formatHostPort(await hostOfWire(frame), framePort),
      remote: formatHostPort(remote.host.text, remote.port),
      ...(rateBps !== undefined && { rateBps }),
      ...(dscpToPriority !== undefined && { dscpToPriority }),
      ...(linkMtu !== undefined && { mtuBytes: linkMtu }),
    },
  };
}
