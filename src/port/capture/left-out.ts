/** Packets of a capture that are not RoCEv2, or cannot be read, by reason. */

import { icrcOfIpPacket } from '../../packet/icrc.js';
import { BTH_BYTES, ICRC_BYTES } from '../../packet/roce.js';
import { UDP_BYTES } from '../../packet/udp.js';
import type { CapturedPacket } from './captured-packet.js';
import { type PacketView, SEEN } from './packet-view.js';

/** Packets to other ports whose ICRC is computed: a capture may have much other traffic. */
const PORT_CHECKS_MAX = 1000;
const PORTS_MAX = 64;

export class LeftOut {
  /** In the order of {@link SEEN}. */
  readonly #kinds = [0, 0, 0, 0, 0, 0];
  readonly #linkTypes = new Set<number>();
  /** UDP ports to which packets with a correct ICRC go, though they are not ports of RoCEv2 here. */
  readonly #ports = new Map<number, number>();
  #portChecks = 0;
  protected = 0;
  /** Entries with several packets whose ends the capture does not show. */
  inseparable = 0;

  get other(): number {
    return this.#kinds[SEEN.OTHER];
  }

  get tunnelled(): number {
    return this.#kinds[SEEN.TUNNEL];
  }

  get cut(): number {
    return this.#kinds[SEEN.CUT];
  }

  get unknownLink(): number {
    return this.#kinds[SEEN.UNKNOWN_LINK];
  }

  get roceV1(): number {
    return this.#kinds[SEEN.ROCE_V1];
  }

  add(kind: number, { linkType }: Pick<CapturedPacket, 'linkType'>): void {
    this.#kinds[kind]++;
    if (kind === SEEN.UNKNOWN_LINK) this.#linkTypes.add(linkType);
  }

  addCut(): void {
    this.#kinds[SEEN.CUT]++;
  }

  /** A UDP datagram to a port that is not one of RoCEv2. */
  addToOtherPort(view: PacketView): void {
    this.#kinds[SEEN.OTHER]++;
    if (this.#portChecks >= PORT_CHECKS_MAX) return;
    const { bytes, ip, udp, ipEnd, udpEnd, isCut, hasNoLength, destinationPort } = view;
    const isShort = udpEnd < udp + UDP_BYTES + BTH_BYTES + ICRC_BYTES;
    if (isCut || isShort || ipEnd !== udpEnd || hasNoLength) return;
    this.#portChecks++;
    const { computed, carried } = icrcOfIpPacket(bytes.subarray(ip, ipEnd), udp - ip);
    if (computed !== carried || (this.#ports.size >= PORTS_MAX && !this.#ports.has(destinationPort))) return;
    this.#ports.set(destinationPort, (this.#ports.get(destinationPort) ?? 0) + 1);
  }

  /** One sentence for each reason why packets were not read. Traffic of other protocols is not one. */
  get reasons(): string[] {
    const links = [...this.#linkTypes].join(', ');
    return [
      this.unknownLink > 0 &&
        `${packets(this.unknownLink, 'of')} link type ${links}: Ethernet, RAW IP, Linux cooked captures and BSD loopback are read`,
      this.roceV1 > 0 && `${packets(this.roceV1)} RoCE v1 (EtherType 0x8915): only RoCEv2 is read`,
      this.protected > 0 && `${packets(this.protected)} protected: give the file of --keylog with --keys`,
      this.tunnelled > 0 &&
        `${packets(this.tunnelled)} in tunnels or encrypted: capture after the tunnel, or remove it from the file`,
      this.inseparable > 0 &&
        `${packets(this.inseparable)} merged by segmentation offload, and the file does not show where each ends: capture at a switch, or without offload (ethtool -K DEVICE gro off tx-udp-segmentation off)`,
      this.cut > 0 && `${packets(this.cut)} captured too short: capture at least 128 bytes of each (tcpdump -s 128)`,
      ...[...this.#ports].map(
        ([port, count]) =>
          `${packets(count, 'with')} a correct ICRC ${count === 1 ? 'goes' : 'go'} to UDP port ${port}: use --udp-port ${port}`,
      ),
    ].filter((text) => text !== false);
  }

  /** Why there is no RoCEv2 packet in a capture with `total` packets. */
  whyNothing(total: number): string {
    if (total === 0) return 'it has no packets';
    const { reasons } = this;
    const why = reasons.length > 0 ? reasons.join('; ') : '--udp-port selects other ports';
    return `it has no RoCEv2 packet that can be read: ${why}`;
  }
}

function packets(count: number, link?: 'of' | 'with'): string {
  const [noun, verb] = count === 1 ? ['packet', 'is'] : ['packets', 'are'];
  return `${count} ${noun} ${link === 'with' ? 'with' : link === 'of' ? `${verb} of` : verb}`;
}
