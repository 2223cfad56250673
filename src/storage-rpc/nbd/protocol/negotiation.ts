/**
 * The server's half of the fixed newstyle handshake. An unknown or invalid option is answered with an error and the
 * next one is read.
 */

import { readU32, writeU16, writeU32 } from '../../../core/bytes.js';
import type { ByteQueue } from './byte-queue.js';
import { answerMetaContext, type MetaAnswer } from './meta-context.js';
import { type AgreedForm, findExport, type NbdExport, PREFERRED_BLOCK_BYTES, transmissionFlags } from './nbd-export.js';
import { OptionData } from './option-data.js';
import * as wire from './wire.js';

const GREETING_BYTES = 18;
const CLIENT_FLAGS_BYTES = 4;
const OPTION_BYTES_MAX = 64 * 1024;
const OPTION_BYTES_HOPELESS = 1 << 20;
const OPTIONS_MAX = 1024;
/** After the export's size and flags, unless both sides leave them out. */
const EXPORT_NAME_ZEROES = 124;

export interface NbdAgreement<E extends NbdExport> extends AgreedForm {
  readonly export: E;
}

/**
 * Whether clients can upgrade to TLS (proto.md, "Server-side requirements"): NOTLS; SELECTIVETLS, at the client's
 * option for every export; FORCEDTLS.
 */
export type TlsPolicy = 'off' | 'optional' | 'required';

/** `starttls`: all later bytes are sent over TLS. `close`: send pending bytes, then disconnect. */
type NegotiationState = 'negotiating' | 'starttls' | 'transmission' | 'close';

export class NbdNegotiation<E extends NbdExport> {
  readonly #exports: readonly E[];
  readonly #send: (bytes: Uint8Array) => void;
  readonly #tls: TlsPolicy;
  #isSecure = false;
  #state: NegotiationState = 'negotiating';
  #clientFlags: number | undefined;
  #option: { readonly code: number; readonly length: number } | undefined;
  /** Bytes of an option too long to be kept that are still to come. */
  #skipping = 0;
  #options = 0;
  #structuredReplies = false;
  #extendedHeaders = false;
  #allocationOf: E | undefined;
  #chosen: E | undefined;

  constructor(exports: readonly E[], send: (bytes: Uint8Array) => void, tls: TlsPolicy) {
    this.#exports = exports;
    this.#send = send;
    this.#tls = tls;
    const greeting = new Uint8Array(GREETING_BYTES);
    wire.writeMagic(greeting, 0, wire.NBDMAGIC);
    wire.writeMagic(greeting, 8, wire.IHAVEOPT);
    writeU16(greeting, 16, wire.FLAG_FIXED_NEWSTYLE | wire.FLAG_NO_ZEROES);
    send(greeting);
  }

  advance(input: ByteQueue): NegotiationState {
    while (this.#state === 'negotiating' && this.#step(input));
    return this.#state;
  }

  /** State agreed in the clear is discarded: it may have been injected. */
  secured(): void {
    this.#isSecure = true;
    this.#structuredReplies = false;
    this.#extendedHeaders = false;
    this.#allocationOf = undefined;
    this.#state = 'negotiating';
  }

  get agreement(): NbdAgreement<E> {
    const chosen = this.#chosen!;
    return { export: chosen, ...this.#formOf(chosen) };
  }

  #formOf(found: E): AgreedForm {
    return {
      structuredReplies: this.#structuredReplies,
      extendedHeaders: this.#extendedHeaders,
      allocationContext: this.#allocationOf === found,
    };
  }

  #step(input: ByteQueue): boolean {
    if (this.#clientFlags === undefined) return this.#readClientFlags(input);
    if (this.#skipping > 0) return this.#skip(input);
    if (this.#option === undefined) return this.#readOptionHeader(input);
    const data = input.take(this.#option.length);
    if (data === undefined) return false;
    const { code } = this.#option;
    this.#option = undefined;
    this.#answer(code, data);
    return true;
  }

  #readClientFlags(input: ByteQueue): boolean {
    const bytes = input.take(CLIENT_FLAGS_BYTES);
    if (bytes === undefined) return false;
    this.#clientFlags = readU32(bytes, 0);
    // A client that is not "fixed" would take the answers to its options for something else.
    const known = wire.FLAG_FIXED_NEWSTYLE | wire.FLAG_NO_ZEROES;
    if ((this.#clientFlags & ~known) !== 0 || (this.#clientFlags & wire.FLAG_FIXED_NEWSTYLE) === 0) this.#close();
    return true;
  }

  #readOptionHeader(input: ByteQueue): boolean {
    const header = input.take(wire.OPTION_HEADER_BYTES);
    if (header === undefined) return false;
    const code = readU32(header, 8);
    const length = readU32(header, 12);
    this.#options++;
    if (!wire.hasMagic(header, 0, wire.IHAVEOPT) || length > OPTION_BYTES_HOPELESS || this.#options > OPTIONS_MAX) {
      this.#close();
    } else {
      this.#option = { code, length };
      if (length > OPTION_BYTES_MAX) this.#skipping = length;
    }
    return true;
  }

  #skip(input: ByteQueue): boolean {
    this.#skipping -= input.skip(this.#skipping);
    if (this.#skipping > 0) return false;
    const { code } = this.#option!;
    this.#option = undefined;
    // EXPORT_NAME has no way to refuse but to hang up.
    if (code === wire.OPT_EXPORT_NAME) this.#close();
    else this.#reply(code, this.#mustSecureFirst(code) ? wire.REP_ERR_TLS_REQD : wire.REP_ERR_TOO_BIG);
    return true;
  }

  #mustSecureFirst(code: number): boolean {
    return this.#tls === 'required' && !this.#isSecure && code !== wire.OPT_STARTTLS && code !== wire.OPT_ABORT;
  }

  #answer(code: number, data: Uint8Array): void {
    if (this.#mustSecureFirst(code)) {
      // EXPORT_NAME has no way to refuse but to hang up.
      if (code === wire.OPT_EXPORT_NAME) this.#close();
      else this.#reply(code, wire.REP_ERR_TLS_REQD);
      return;
    }
    switch (code) {
      case wire.OPT_EXPORT_NAME:
        this.#exportName(data);
        return;
      case wire.OPT_ABORT:
        this.#reply(code, wire.REP_ACK);
        this.#close();
        return;
      case wire.OPT_LIST:
        if (data.length > 0) this.#reply(code, wire.REP_ERR_INVALID);
        else this.#list();
        return;
      case wire.OPT_STARTTLS:
        this.#startTls(data);
        return;
      case wire.OPT_INFO:
      case wire.OPT_GO:
        this.#info(code, data);
        return;
      case wire.OPT_STRUCTURED_REPLY:
      case wire.OPT_EXTENDED_HEADERS:
        this.#chooseHeaders(code, data);
        return;
      case wire.OPT_LIST_META_CONTEXT:
      case wire.OPT_SET_META_CONTEXT:
        this.#metaContext(code, data);
        return;
      default:
        this.#reply(code, wire.REP_ERR_UNSUP);
    }
  }

  #exportName(data: Uint8Array): void {
    const option = new OptionData(data);
    const name = option.text(data.length);
    // Its answer has no room for a refusal, and a client with extended headers must not use it.
    const chosen = name === undefined || this.#extendedHeaders ? undefined : findExport(this.#exports, name);
    if (chosen === undefined) {
      this.#close();
      return;
    }
    const zeroes = (this.#clientFlags! & wire.FLAG_NO_ZEROES) === 0 ? EXPORT_NAME_ZEROES : 0;
    const answer = new Uint8Array(10 + zeroes);
    wire.writeU64(answer, 0, chosen.sizeBytes);
    writeU16(answer, 8, transmissionFlags(chosen, this.#formOf(chosen)));
    this.#send(answer);
    this.#begin(chosen);
  }

  #startTls(data: Uint8Array): void {
    if (this.#tls === 'off') {
      this.#reply(wire.OPT_STARTTLS, wire.REP_ERR_UNSUP);
    } else if (data.length > 0 || this.#isSecure) {
      this.#reply(wire.OPT_STARTTLS, wire.REP_ERR_INVALID);
    } else {
      this.#reply(wire.OPT_STARTTLS, wire.REP_ACK);
      this.#state = 'starttls';
    }
  }

  /** Extended headers bring replies in chunks with them, and there is no way back. */
  #chooseHeaders(code: number, data: Uint8Array): void {
    const isExtended = code === wire.OPT_EXTENDED_HEADERS;
    if (data.length > 0) {
      this.#reply(code, wire.REP_ERR_INVALID);
    } else if (!isExtended && this.#extendedHeaders) {
      this.#reply(code, wire.REP_ERR_EXT_HEADER_REQD);
    } else {
      this.#structuredReplies = true;
      this.#extendedHeaders = isExtended;
      this.#reply(code, wire.REP_ACK);
    }
  }

  #list(): void {
    for (const { name } of this.#exports) {
      const text = encoder.encode(name);
      const entry = new Uint8Array(4 + text.length);
      writeU32(entry, 0, text.length);
      entry.set(text, 4);
      this.#reply(wire.OPT_LIST, wire.REP_SERVER, entry);
    }
    this.#reply(wire.OPT_LIST, wire.REP_ACK);
  }

  #info(code: number, data: Uint8Array): void {
    const option = new OptionData(data);
    const name = option.string();
    const asked = option.list16();
    if (name === undefined || asked === undefined || !option.atEnd) {
      this.#reply(code, wire.REP_ERR_INVALID);
      return;
    }
    const found = findExport(this.#exports, name);
    if (found === undefined) {
      this.#reply(code, wire.REP_ERR_UNKNOWN);
      return;
    }
    this.#reply(code, wire.REP_INFO, exportInfo(found, this.#formOf(found)));
    this.#reply(code, wire.REP_INFO, blockSizeInfo(found));
    if (asked.includes(wire.INFO_NAME)) this.#reply(code, wire.REP_INFO, textInfo(wire.INFO_NAME, found.name));
    if (asked.includes(wire.INFO_DESCRIPTION) && found.description !== '') {
      this.#reply(code, wire.REP_INFO, textInfo(wire.INFO_DESCRIPTION, found.description));
    }
    this.#reply(code, wire.REP_ACK);
    if (code === wire.OPT_GO) this.#begin(found);
  }

  #metaContext(code: number, data: Uint8Array): void {
    const isSet = code === wire.OPT_SET_META_CONTEXT;
    if (isSet) this.#allocationOf = undefined; // A new request replaces the previous one, even if it is refused.
    const answer: MetaAnswer<E> = this.#structuredReplies
      ? answerMetaContext(this.#exports, data, isSet)
      : { error: wire.REP_ERR_INVALID };
    if ('error' in answer) {
      this.#reply(code, answer.error);
      return;
    }
    if (isSet && answer.contexts.length > 0) this.#allocationOf = answer.export;
    for (const context of answer.contexts) this.#reply(code, wire.REP_META_CONTEXT, context);
    this.#reply(code, wire.REP_ACK);
  }

  #reply(code: number, type: number, data?: Uint8Array): void {
    const length = data?.length ?? 0;
    const bytes = new Uint8Array(wire.OPTION_REPLY_HEADER_BYTES + length);
    wire.writeMagic(bytes, 0, wire.OPTION_REPLY_MAGIC);
    writeU32(bytes, 8, code);
    writeU32(bytes, 12, type);
    writeU32(bytes, 16, length);
    if (data !== undefined) bytes.set(data, wire.OPTION_REPLY_HEADER_BYTES);
    this.#send(bytes);
  }

  #begin(chosen: E): void {
    this.#chosen = chosen;
    this.#state = 'transmission';
  }

  #close(): void {
    this.#state = 'close';
  }
}

const encoder = new TextEncoder();

function exportInfo(found: NbdExport, form: AgreedForm): Uint8Array {
  const info = new Uint8Array(12);
  writeU16(info, 0, wire.INFO_EXPORT);
  wire.writeU64(info, 2, found.sizeBytes);
  writeU16(info, 10, transmissionFlags(found, form));
  return info;
}

function blockSizeInfo({ blockBytes }: NbdExport): Uint8Array {
  const info = new Uint8Array(14);
  writeU16(info, 0, wire.INFO_BLOCK_SIZE);
  writeU32(info, 2, blockBytes);
  writeU32(info, 6, Math.max(blockBytes, PREFERRED_BLOCK_BYTES));
  writeU32(info, 10, wire.PAYLOAD_BYTES_MAX);
  return info;
}

function textInfo(type: number, text: string): Uint8Array {
  const bytes = encoder.encode(text);
  const info = new Uint8Array(2 + bytes.length);
  writeU16(info, 0, type);
  info.set(bytes, 2);
  return info;
}
