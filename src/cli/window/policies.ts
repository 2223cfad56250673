/** What `rocev2 window` compares: the two ack policies of the pool, and the protocol without one. */

import { POLICY_NAMES } from '../../window/release-policy.js';

export const WINDOW_POLICIES = [...POLICY_NAMES, 'baseline'] as const;
export type WindowPolicy = (typeof WINDOW_POLICIES)[number];
