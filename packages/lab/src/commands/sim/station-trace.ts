/** Time 0 of the trace is time 0 of the run. */

import { TraceFile, TracePort } from 'rocev2/internal/capture';
import type { Port, RxDatagram, TxBatch } from 'rocev2/internal/port';
import type { StationObserver } from '../../sim/scenario/run-options.js';
import type { SimStation } from '../../sim/sim-station.js';

export class StationTrace implements StationObserver {
  readonly host: string;
  readonly #file: TraceFile;
  readonly #time: { nowNs: () => number };

  private constructor(host: string, file: TraceFile, time: { nowNs: () => number }) {
    this.host = host;
    this.#file = file;
    this.#time = time;
  }

  static async create(path: string, host: string): Promise<StationTrace> {
    const time = { nowNs: () => 0 };
    const file = await TraceFile.create(path, `simulated host ${host}`, {
      nowNs: () => time.nowNs(),
      wallMs: () => 0,
    });
    return new StationTrace(host, file, time);
  }

  attach(station: SimStation, nowNs: () => number): void {
    this.#time.nowNs = nowNs;
    const inner = new StationPort(station);
    const port = new TracePort(inner, this.#file);
    const { nic } = station.host;
    port.watch({ counters: nic.counters, visitRates: (visit) => nic.visitRates(nowNs(), visit) });
    station.tap = {
      sent: (batch) => {
        port.sendBatch(batch);
        port.sampleRates();
      },
      received: (datagram, takeIn) => {
        port.onDatagram = takeIn;
        inner.onDatagram(datagram);
        port.sampleRates();
      },
    };
  }

  flush(): Promise<void> {
    return this.#file.flush();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

class StationPort implements Port {
  readonly description: string;
  readonly address: Port['address'];
  readonly udpPort = 0;
  readonly pathMtuMax = 4096;
  readonly ipIdPolicy = 'sequential';
  readonly fixedSourcePort = undefined;
  readonly receiveBudgetPackets = Number.POSITIVE_INFINITY;
  onDatagram: (datagram: RxDatagram) => void = () => {};
  onPause: Port['onPause'] = () => {};
  onError: Port['onError'] = () => {};

  constructor({ host, address }: SimStation) {
    this.description = host.portDescription;
    this.address = address;
  }

  get counters(): Port['counters'] {
    throw new Error('a simulated cable counts nothing');
  }

  async open(): Promise<void> {}

  beginBatch(): undefined {
    return undefined;
  }

  sendBatch(_batch: TxBatch): void {}

  async close(): Promise<void> {}
}
