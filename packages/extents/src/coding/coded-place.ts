import type { LiveNodes } from '../live-nodes.js';
import type { CodedPlace, FragmentPlace } from '../messages.js';
import { type CodedRecord, NOBODY } from '../metadata-schema.js';
import { erasureCode } from './erasure-code.js';

export function codedPlace({ code, fragments }: CodedRecord, live: LiveNodes): CodedPlace {
  const addresses = fragments.flatMap(({ node, making }, fragment): FragmentPlace[] =>
    node === NOBODY || !live.isUp(node) ? [] : live.addresses([node]).map((place) => ({ ...place, fragment, making })),
  );
  return { code, fragments: addresses };
}

export function isDecodable({ code, fragments }: CodedRecord, isThere: (node: number) => boolean): boolean {
  const there = fragments.flatMap(({ node }, fragment) => (node !== NOBODY && isThere(node) ? fragment : []));
  return erasureCode(code).isDecodable(there);
}
