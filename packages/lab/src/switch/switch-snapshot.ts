import { PRIORITIES } from 'rocev2/internal/packet';
import type { BufferPolicy, BufferPools, IngressGroupUse } from './buffer-policy.js';
import type { EgressQueues } from './egress-queues.js';
import type { FlowControl } from './flow-control.js';

/** One egress queue. */
export interface EgressQueueUse {
  /** Frames waiting. */
  readonly packets: number;
  /** Bytes waiting. */
  readonly bytes: number;
  /** The most since the watermarks were reset. */
  readonly bytesMax: number;
  /** Asked to be silent by the neighbour; in a storm possibly without effect. */
  readonly isPaused: boolean;
  /** Stopped by the operator. */
  readonly isBlocked: boolean;
  /** The PFC watchdog drops what is for it. */
  readonly isInStorm: boolean;
}

/** The queues of one port. */
export interface SwitchPortSnapshot {
  /** By priority. */
  readonly egress: readonly EgressQueueUse[];
  /** By priority; empty without a shared buffer. */
  readonly ingress: readonly IngressGroupUse[];
}

/** The state of all queues and pools at `nowNs`. */
export interface SwitchSnapshot {
  /** The switch's time. */
  readonly nowNs: number;
  /** Undefined without a shared buffer. */
  readonly pools: BufferPools | undefined;
  /** By port name. */
  readonly ports: Readonly<Record<string, SwitchPortSnapshot>>;
}

interface SwitchParts {
  readonly names: readonly string[];
  readonly queues: EgressQueues;
  readonly buffer: BufferPolicy;
  readonly flowControl: FlowControl;
  readonly blocked: Uint8Array;
}

export function takeSnapshot(
  { names, queues, buffer, flowControl, blocked }: SwitchParts,
  nowNs: number,
): SwitchSnapshot {
  const priorities = Array.from({ length: PRIORITIES }, (_, priority) => priority);
  const portSnapshot = (port: number): SwitchPortSnapshot => ({
    egress: priorities.map((priority) => {
      const queue = port * PRIORITIES + priority;
      return {
        packets: queues.packets[queue],
        bytes: queues.bytes[queue],
        bytesMax: queues.bytesMax[queue],
        isPaused: flowControl.receiver.isPaused(port, priority, nowNs),
        isBlocked: (blocked[port] & (1 << priority)) !== 0,
        isInStorm: flowControl.isInStorm(port, priority),
      };
    }),
    ingress: priorities.map((priority) => buffer.group(port, priority)).filter((group) => group !== undefined),
  });
  return {
    nowNs,
    pools: buffer.pools(),
    ports: Object.fromEntries(names.map((name, port) => [name, portSnapshot(port)])),
  };
}
