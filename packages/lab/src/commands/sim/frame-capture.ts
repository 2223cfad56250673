import { LINKTYPE_ETHERNET, PcapngFile } from 'rocev2/internal/capture';
import type { FrameObserver } from '../../sim/scenario/run-options.js';

/** The bytes one step may bring: virtual time does not wait for the disk. */
const BUFFER_BYTES = 256 * 1024 * 1024;

export class FrameCapture implements FrameObserver {
  readonly host: string;
  readonly #file: PcapngFile;

  private constructor(host: string, file: PcapngFile) {
    this.host = host;
    this.#file = file;
  }

  static async create(path: string, host: string): Promise<FrameCapture> {
    const file = await PcapngFile.create(path, [{ name: host, linkType: LINKTYPE_ETHERNET }], BUFFER_BYTES);
    return new FrameCapture(host, file);
  }

  readonly onFrame = (timeNs: number, bytes: Uint8Array): void => {
    this.#file.writePacket(0, BigInt(Math.round(timeNs)), bytes);
  };

  get lost(): number {
    return this.#file.dropped;
  }

  flush(): Promise<void> {
    return this.#file.flush();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
