import { RoceError } from 'rocev2/internal/core';
import { PFC_QUANTA_MAX, type PfcFrame, pauseNs } from 'rocev2/internal/packet';
import { EgressPause } from './egress-pause.js';
import { PauseSender } from './pause-sender.js';
import { PfcWatchdog, type StormHandler } from './pfc-watchdog.js';
import { priorityMask } from './priorities.js';
import type { PfcConfig, SwitchPortConfig } from './switch-config.js';

interface FlowControlHandler extends StormHandler {
  discard(port: number, priority: number): void;
}

export class FlowControl {
  readonly isOn: boolean;
  readonly sender: PauseSender;
  readonly receiver: EgressPause;
  readonly #watchdog: PfcWatchdog | undefined;
  readonly #dropping: Uint8Array;
  readonly #quantumNs: readonly number[];
  readonly #onReady: (port: number) => void;

  constructor(
    config: PfcConfig | undefined,
    ports: readonly SwitchPortConfig[],
    onReady: (port: number) => void,
    handler: FlowControlHandler,
  ) {
    const rates = ports.map((port) => port.rateBps ?? Number.POSITIVE_INFINITY);
    const quanta = config?.quanta ?? PFC_QUANTA_MAX;
    if (config !== undefined) check(quanta, rates);
    this.isOn = config !== undefined;
    this.sender = new PauseSender(
      quanta,
      rates.map((rateBps) => pauseNs(quanta, rateBps)),
      onReady,
    );
    this.receiver = new EgressPause(ports.length, priorityMask(config?.priorities ?? []));
    this.#dropping = new Uint8Array(ports.length);
    this.#quantumNs = rates.map((rateBps) => pauseNs(1, rateBps));
    this.#onReady = onReady;
    this.#watchdog =
      config?.watchdog &&
      new PfcWatchdog(
        ports.length,
        config.priorities,
        config.watchdog,
        this.receiver,
        this.#inStorm(handler, config.watchdog.action ?? 'drop'),
      );
  }

  isDropping(port: number, priority: number): boolean {
    return (this.#dropping[port] & (1 << priority)) !== 0;
  }

  isInStorm(port: number, priority: number): boolean {
    return this.#watchdog !== undefined && (this.#watchdog.storms[port] & (1 << priority)) !== 0;
  }

  receive(port: number, frame: PfcFrame, nowNs: number): void {
    this.receiver.receive(port, frame, this.#quantumNs[port], nowNs);
    this.#watchdog?.wake(nowNs);
    this.#onReady(port);
  }

  get nextDeadlineNs(): number {
    const pauses = Math.min(this.receiver.nextExpiryNs, this.sender.nextRefreshNs);
    return this.#watchdog === undefined ? pauses : Math.min(pauses, this.#watchdog.nextPollNs);
  }

  onDeadline(nowNs: number): void {
    this.#watchdog?.poll(nowNs); // before pauses end, which it must have seen
    this.receiver.expire(nowNs, this.#onReady);
    this.sender.refresh(nowNs);
  }

  #inStorm(handler: FlowControlHandler, action: 'drop' | 'forward' | 'alert'): StormHandler {
    if (action === 'alert') return handler;
    const drops = action === 'drop';
    return {
      begin: (port, priority) => {
        this.receiver.ignore(port, priority, true);
        if (drops) {
          this.#dropping[port] |= 1 << priority;
          this.sender.silence(port, priority);
          handler.discard(port, priority);
        }
        handler.begin(port, priority);
        this.#onReady(port);
      },
      end: (port, priority) => {
        this.receiver.ignore(port, priority, false);
        if (drops) {
          this.#dropping[port] &= ~(1 << priority);
          this.sender.listen(port, priority);
        }
        handler.end(port, priority);
      },
    };
  }
}

function check(quanta: number, rates: readonly number[]): void {
  if (!Number.isInteger(quanta) || quanta < 1 || quanta > PFC_QUANTA_MAX) {
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a pause cannot last ${quanta} quanta`, 'it lasts 1 to 65535');
  }
  if (!rates.every((rateBps) => Number.isFinite(rateBps) && rateBps > 0)) {
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'PFC counts time in bit times', 'give every port a rateBps');
  }
}
