/**
 * `rocev2/packet`: the packet codec alone, from Ethernet to the ICRC.
 *
 * @module rocev2/packet
 */

export * from './address.js';
export * from './aeth.js';
export * from './arp.js';
export * from './checksum.js';
export * from './ethernet.js';
export * from './frame.js';
export * from './icrc.js';
export * from './int-trailer.js';
export * from './ipv4.js';
export * from './ipv6.js';
export * from './ndp.js';
export * from './opcode.js';
export * from './psn.js';
export * from './roce.js';
export * from './udp.js';
export * from './view.js';
