import { buildMad, type CmMad, parseMad } from 'rocev2/internal/cm';
import { type RandomSource, randomInt } from 'rocev2/internal/core';
import { emitRoce, PSN_MASK, UD_SEND_ONLY } from 'rocev2/internal/packet';
import type { TestWire } from './wire.js';

const GSI_QPN = 1;
const GSI_QKEY = 0x8001_0000;

export class Management {
  readonly wire: TestWire;
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
      // Our DREP was lost; the target repeats its DREQ until one comes.
      else if (mad.name === 'DREQ') this.answerDisconnect(mad);
    });
  }

  send(mad: Uint8Array): void {
    this.#psn = (this.#psn + 1) & PSN_MASK;
    const to = { destQpn: GSI_QPN, sourceQpn: GSI_QPN, qkey: GSI_QKEY };
    this.wire.send(emitRoce({ opcode: UD_SEND_ONLY, psn: this.#psn, ...to }, mad));
  }

  answerDisconnect({ transactionId, fields }: CmMad & { name: 'DREQ' }): void {
    const { localCommId, remoteCommId } = fields;
    this.send(buildMad('DREP', transactionId, { localCommId: remoteCommId, remoteCommId: localCommId }));
  }

  open(take: (mad: CmMad) => void): number {
    const commId = randomInt(this.random, 1, 0xffffffff);
    this.#byCommId.set(commId, take);
    return commId;
  }

  close(commId: number): void {
    this.#byCommId.delete(commId);
  }
}
