/** A capture of the frames on the cable of one simulated host: what `decode`, `audit` and Wireshark read. Time 0 of the run is time 0 of the capture. */

import { LINKTYPE_ETHERNET, PcapngFile } from 'rocev2/internal/capture';
import type { FrameObserver } from '../../sim/scenario/run.js';

/** What one step of a run may bring: virtual time does not wait for the disk. */
const BUFFER_BYTES = 256 * 1024 * 1024;

/** The capture file of one run. */
export class FrameCapture implements FrameObserver {
  readonly host: string;
  readonly #file: PcapngFile;

  private constructor(host: string, file: PcapngFile) {
    this.host = host;
    this.#file = file;
  }

  /** Creates or overwrites `path`. Throws ERR_ROCE_IO. */
  static async create(path: string, host: string): Promise<FrameCapture> {
    const file = await PcapngFile.create(path, [{ name: host, linkType: LINKTYPE_ETHERNET }], BUFFER_BYTES);
    return new FrameCapture(host, file);
  }

  readonly onFrame = (timeNs: number, bytes: Uint8Array): void => {
    this.#file.writePacket(0, BigInt(Math.round(timeNs)), bytes);
  };

  /** Frames that found no room. */
  get lost(): number {
    return this.#file.dropped;
  }

  /** Waits for the disk. */
  flush(): Promise<void> {
    return this.#file.flush();
  }

  /** Throws ERR_ROCE_IO if something could not be written. */
  close(): Promise<void> {
    return this.#file.close();
  }
}
