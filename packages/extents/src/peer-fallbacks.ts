/**
 * By address of a peer: whether RDMA to it is used, or held down after a failure. One connection is the probe and the
 * whole ramp.
 */

import { RdmaFallback } from 'rocev2/internal/cm';
import type { RandomSource } from 'rocev2/internal/core';

interface PeerFallback {
  readonly policy: RdmaFallback;
  /** TCP reached the peer after RDMA had failed: packets are lost, and the peer is not away. */
  isReachedByTcp: boolean;
}

/** The addresses with which RDMA has failed. Time and randomness are passed in. */
export class PeerFallbacks {
  readonly #random: RandomSource;
  readonly #peers = new Map<string, PeerFallback>();

  constructor(random: RandomSource) {
    this.#random = random;
  }

  /** False: RDMA to this address is held down. */
  mayUseRdma(address: string, now: number): boolean {
    const policy = this.#peers.get(address)?.policy;
    policy?.onDeadline(now);
    return policy?.state !== 'HOLD_DOWN';
  }

  /**
   * RDMA to this address is being tried again, or RDMA to a peer that TCP reaches is held down: packets may be lost on
   * the way to all.
   */
  isDoubtful(address: string, now: number): boolean {
    return [...this.#peers].some(
      ([other, { policy, isReachedByTcp }]) =>
        (other === address && policy.state === 'PROBE') ||
        (isReachedByTcp && policy.state === 'HOLD_DOWN' && now < policy.deadlineNs),
    );
  }

  /** RDMA to this address works. */
  onRdma(address: string, now: number): void {
    const peer = this.#peers.get(address);
    if (peer === undefined) return;
    peer.isReachedByTcp = false;
    peer.policy.onProbe(true, now);
    peer.policy.onFailbackDone(now);
  }

  /** TCP to this address works. */
  onTcp(address: string): void {
    const peer = this.#peers.get(address);
    if (peer !== undefined) peer.isReachedByTcp = true;
  }

  /** RDMA to this address has failed. */
  onFailure(address: string, now: number): void {
    for (const [other, { policy }] of this.#peers) if (policy.isClean(now)) this.#peers.delete(other);
    const peer = this.#peers.get(address) ?? {
      policy: new RdmaFallback({ random: this.#random }),
      isReachedByTcp: false,
    };
    this.#peers.set(address, peer);
    peer.policy.onFailure(now);
  }
}
