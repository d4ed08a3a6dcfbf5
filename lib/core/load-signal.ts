import { LazySignal } from './lazy-signal.js';

/** What a loader gets, and what one that loads for several may want to know besides. */
export class LoadSignal extends LazySignal {
  isUrgent = false;
  /** Called once, when it becomes urgent. */
  onHurry: (() => void) | undefined;

  hurry(): void {
    if (this.isUrgent) return;
    this.isUrgent = true;
    this.onHurry?.();
  }
}
