/** Output of `rocev2 wire` while it runs: matching rules, and findings of the audit. Bounded in lines per second. */

import type { Output } from '@rocev2/command';
import { formatNs, NS_PER_S } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { FaultSubject, FaultVerdict } from 'rocev2/internal/faults';
import { opcodeName } from 'rocev2/internal/packet';
import type { OnObservation } from '../../wire/observer.js';
import { SIDES } from '../../wire/wire.js';

const LINES_A_SECOND = 50;

export class LiveLines {
  readonly #output: Output;
  readonly #startNs = nowNs();
  #second = 0;
  #printed = 0;
  #left = 0;

  constructor(output: Output) {
    this.#output = output;
  }

  /** A rule matched. */
  readonly fault = ({ rule }: Readonly<FaultVerdict>, subject: Readonly<FaultSubject>): void => {
    const { ingress, egress, opcode, psn, destQpn } = subject;
    const packet = `${opcodeName(opcode)} PSN ${psn} to QP ${hex(destQpn)}`;
    this.#print(`${ingress}>${egress}  ${packet}: rule '${rule}'`);
  };

  readonly observe: OnObservation = (observation, packet, side) => {
    const place = `at ${SIDES[side]}  packet ${packet}`;
    if (observation.kind === 'measure') {
      this.#print(`${place}, ${observation.flow}: ${observation.name} after ${formatNs(observation.value)}`);
      return;
    }
    if (observation.kind === 'choice') {
      const { rule, choice, flow } = observation;
      this.#print(`${place}, ${flow}: rule ${rule}: ${choice}`);
      return;
    }
    const { rule, verdict, flow, text } = observation.finding;
    const what = verdict === 'violation' ? `rule ${rule} broken` : `rule ${rule} cannot be judged`;
    const line = `${place}, ${flow}: ${what}: ${text}`;
    const { colors } = this.#output;
    this.#print(verdict === 'violation' ? colors.red(line) : colors.yellow(line));
  };

  end(): void {
    this.#sayLeft();
  }

  #print(text: string): void {
    const elapsedNs = nowNs() - this.#startNs;
    const second = Math.floor(elapsedNs / NS_PER_S);
    if (second !== this.#second) {
      this.#sayLeft();
      this.#second = second;
      this.#printed = 0;
    }
    if (this.#printed++ >= LINES_A_SECOND) {
      this.#left++;
      return;
    }
    this.#output.line(`${(elapsedNs / NS_PER_S).toFixed(6).padStart(12)}  ${text}`);
  }

  #sayLeft(): void {
    if (this.#left > 0) this.#output.line(`              ${this.#left} more`);
    this.#left = 0;
  }
}

function hex(qpn: number): string {
  return `0x${qpn.toString(16).padStart(6, '0')}`;
}
