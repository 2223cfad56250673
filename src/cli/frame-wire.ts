/** `--frame`: an endpoint plugged into a software switch instead of bound to a UDP port. */

import { parseRateBps } from '../core/units.js';
import { parseUdpEndpoint, type UdpEndpoint } from '../dgram-ext/udp-endpoint.js';
import type { PortOptions } from '../driver/open-port.js';
import { CommandFailure, EXIT_USAGE } from './exit.js';
import { localAddressTowards } from './local-address.js';
import { textOption } from './options.js';

/** Where `--frame` leads. */
export interface FrameWire {
  /** The switch's port. */
  readonly remote: UdpEndpoint;
  /** Of the emulated link. */
  readonly rateBps: number | undefined;
}

/** What is told of an endpoint that may be plugged into a switch. */
export interface FrameFlags {
  /** The wire; left out: a UDP port. */
  readonly frame?: FrameWire;
  /** The endpoint's own address, which the switch's wire has no way to suggest. */
  readonly bind?: { readonly text: string };
  /** UDP port of this end of the wire; default: any. */
  readonly framePort?: number;
  /** The largest IP packet of the link, in bytes. */
  readonly linkMtu?: number;
}

/** `HOST:PORT[,RATE]`, for commander. */
export const frameOption = textOption((text): FrameWire => {
  const [, remote, rate] = /^([^,]*)(?:,(.*))?$/.exec(text)!;
  return { remote: parseUdpEndpoint(remote), rateBps: rate === undefined ? undefined : parseRateBps(rate) };
});

/** The address of this host from which frames leave to the switch: there the endpoints meet over TCP. */
export async function hostOfWire({ remote }: FrameWire): Promise<string> {
  return (await localAddressTowards(remote.host)).text;
}

/** What `openDevice` needs to know; empty without a wire. Throws a CommandFailure (usage) without an address. */
export async function frameDeviceOptions(flags: FrameFlags): Promise<Pick<PortOptions, 'frame'>> {
  const { frame, bind, framePort = 0, linkMtu } = flags;
  if (frame === undefined) {
    if (flags.framePort === undefined && linkMtu === undefined) return {};
    throw new CommandFailure(EXIT_USAGE, '--frame-port and --link-mtu go with --frame');
  }
  if (bind === undefined) {
    throw new CommandFailure(EXIT_USAGE, '--frame needs --bind: the IP address of this endpoint behind the switch');
  }
  const { remote, rateBps } = frame;
  return {
    frame: {
      local: endpointText(await hostOfWire(frame), framePort),
      remote: endpointText(remote.host.text, remote.port),
      ...(rateBps !== undefined && { rateBps }),
      ...(linkMtu !== undefined && { mtuBytes: linkMtu }),
    },
  };
}

function endpointText(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
