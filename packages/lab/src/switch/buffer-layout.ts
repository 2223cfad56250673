import { RoceError } from 'rocev2/internal/core';
import { headroomBytes } from './headroom.js';
import { priorityMask } from './priorities.js';
import type { BufferConfig, SwitchPortConfig } from './switch-config.js';

export interface BufferLayout {
  readonly totalBytes: number;
  readonly headroomPoolBytes: number;
  readonly sharedBytes: number;
  /** P_lossy: what lossy frames may take. */
  readonly egressLossyPoolBytes: number;
  /** Threshold of a lossless ingress queue: this many times the free shared bytes. */
  readonly losslessAlpha: number;
  /** Threshold of a lossy egress queue: this many times the free bytes of its pool. */
  readonly lossyAlpha: number;
  /** Kept for each lossless ingress queue. */
  readonly reservedBytes: number;
  /** How far below its threshold a paused queue must fall. */
  readonly xonOffsetBytes: number;
  /** Bit p: priority p is lossless. */
  readonly losslessMask: number;
  readonly headroomBytes: readonly number[];
}

export const BUFFER_BYTES = 12e6;
const CABLE_METRES = 5;

export function layOutBuffer(
  config: BufferConfig,
  losslessPriorities: readonly number[],
  ports: readonly SwitchPortConfig[],
  frameBytesMax: number,
): BufferLayout {
  const {
    totalBytes = BUFFER_BYTES,
    headroomOversubscription = 1,
    losslessAlpha = 1 / 8,
    lossyAlpha = 8,
    reservedBytes = 4096,
    xonOffsetBytes = 3072,
  } = config;
  const own = { totalBytes, headroomOversubscription, losslessAlpha, lossyAlpha, reservedBytes, xonOffsetBytes };
  const settings = { ...config, ...own };
  if (!(losslessAlpha > 0 && lossyAlpha > 0 && headroomOversubscription >= 1)) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `alphas of ${losslessAlpha} and ${lossyAlpha} and an over-subscription of ${headroomOversubscription} do not fit a buffer`,
      'alphas are more than 0, over-subscription is 1 or more',
    );
  }
  const losslessMask = priorityMask(losslessPriorities);
  const lossless = new Set(losslessPriorities).size;
  const headrooms = ports.map((port) => (lossless === 0 ? 0 : portHeadroom(port, frameBytesMax)));
  const headroomSum = lossless * headrooms.reduce((sum, bytes) => sum + bytes, 0);
  const headroomPoolBytes = settings.headroomPoolBytes ?? Math.ceil(headroomSum / headroomOversubscription);
  const ingressPoolBytes = settings.ingressPoolBytes ?? totalBytes - headroomPoolBytes;
  const sharedBytes = ingressPoolBytes - lossless * ports.length * settings.reservedBytes;
  if (!(sharedBytes > 0) || !(ingressPoolBytes + headroomPoolBytes <= totalBytes)) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      `a buffer of ${totalBytes} bytes cannot hold ${headroomPoolBytes} of headroom and an ingress pool of ${ingressPoolBytes} ` +
        `with ${settings.reservedBytes} reserved for each of ${lossless * ports.length} lossless queues`,
      'enlarge totalBytes, or set headroomBytes, headroomOversubscription or reservedBytes',
    );
  }
  const egressLossyPoolBytes = settings.egressLossyPoolBytes ?? sharedBytes;
  if (egressLossyPoolBytes > ingressPoolBytes) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      `the egress pool of lossy traffic (${egressLossyPoolBytes}) is larger than the ingress pool (${ingressPoolBytes})`,
      'otherwise lossy traffic alone could take all of it',
    );
  }
  return {
    ...settings,
    headroomPoolBytes,
    sharedBytes,
    egressLossyPoolBytes,
    losslessMask,
    headroomBytes: headrooms,
  };
}

/** The switch counts bytes, not cells, so a packet occupies its length. */
function portHeadroom(port: SwitchPortConfig, frameBytesMax: number): number {
  if (port.headroomBytes !== undefined) return port.headroomBytes;
  return headroomBytes({
    rateBps: port.rateBps!,
    cableMetres: port.cableMetres ?? CABLE_METRES,
    portMtuBytes: frameBytesMax,
    losslessMtuBytes: frameBytesMax,
    cellBytes: 1,
    smallPacketPercent: 0,
  });
}
