/** Which of the planted bugs a run tries: `npm run planted` tries all of them (SVC_PLANTED=all). */
import { PartOfDay } from "../doubles/part-of-day.js";

export const planted = new PartOfDay("SVC_PLANTED", 12);
