export class ReadyPorts {
  readonly #ports: Uint16Array;
  readonly #listed: Uint8Array;
  #head = 0;
  #count = 0;

  constructor(ports: number) {
    this.#ports = new Uint16Array(2 ** Math.ceil(Math.log2(ports)));
    this.#listed = new Uint8Array(ports);
  }

  add(port: number): void {
    if (this.#listed[port] === 1) return;
    this.#listed[port] = 1;
    this.#ports[(this.#head + this.#count++) & (this.#ports.length - 1)] = port;
  }

  next(): number {
    if (this.#count === 0) return -1;
    const port = this.#ports[this.#head];
    this.#head = (this.#head + 1) & (this.#ports.length - 1);
    this.#count--;
    this.#listed[port] = 0;
    return port;
  }
}
