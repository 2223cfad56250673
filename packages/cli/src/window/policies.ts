import { POLICY_NAMES } from 'rocev2/internal/window';

/** Values of `--policy`. */
export const WINDOW_POLICIES = [...POLICY_NAMES, 'baseline'] as const;
/** One of {@link WINDOW_POLICIES}. */
export type WindowPolicy = (typeof WINDOW_POLICIES)[number];
