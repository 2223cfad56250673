/** The management datagrams between a tester and its target: messages of RDMA CM, by communication ID. */

import { buildMad, type CmMad, parseMad } from 'rocev2/internal/cm';
import { type RandomSource, randomInt } from 'rocev2/internal/core';
import { emitRoce, PSN_MASK, UD_SEND_ONLY } from 'rocev2/internal/packet';
import type { TestWire } from './wire.js';

const GSI_QPN = 1;
const GSI_QKEY = 0x8001_0000;

/** Takes and sends messages of connection management. */
export class Management {
  /** Carries them. */
  readonly wire: TestWire;
  /** Communication IDs, queue pair numbers and PSNs. */
  readonly random: RandomSource;
  readonly #byCommId = new Map<number, (mad: CmMad) => void>();
  #psn = 0;

  constructor(wire: TestWire, random: RandomSource) {
    this.wire = wire;
    this.random = random;
    wire.listen(GSI_QPN, ({ payload }) => {
      const mad = parseMad(payload);
      if (typeof mad === 'string' || !('remoteCommId' in mad.fields)) return;
      const take = this.#byCommId.get(mad.fields.remoteCommId);
      if (take !== undefined) take(mad);
      // Of a connection that is forgotten: our DREP was lost, and the target asks until one comes.
      else if (mad.name === 'DREQ') this.answerDisconnect(mad);
    });
  }

  /** Sends a message of connection management. */
  send(mad: Uint8Array): void {
    this.#psn = (this.#psn + 1) & PSN_MASK;
    const to = { destQpn: GSI_QPN, sourceQpn: GSI_QPN, qkey: GSI_QKEY };
    this.wire.send(emitRoce({ opcode: UD_SEND_ONLY, psn: this.#psn, ...to }, mad));
  }

  /** Sends the DREP for a DREQ. */
  answerDisconnect({ transactionId, fields }: CmMad & { name: 'DREQ' }): void {
    const { localCommId, remoteCommId } = fields;
    this.send(buildMad('DREP', transactionId, { localCommId: remoteCommId, remoteCommId: localCommId }));
  }

  /** A communication ID whose messages `take` gets. */
  open(take: (mad: CmMad) => void): number {
    const commId = randomInt(this.random, 1, 0xffffffff);
    this.#byCommId.set(commId, take);
    return commId;
  }

  /** Messages about it are ignored from now on, except that a DREQ is answered. */
  close(commId: number): void {
    this.#byCommId.delete(commId);
  }
}
