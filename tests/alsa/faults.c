/* The faults of a test card: which is due, and when the next one is. */
#include "device.h"

static int has_ended(const struct fault *fault, int64_t now)
{
  return fault->lasts_ns > 0 && fault->since_ns > 0 && now >= fault->since_ns + fault->lasts_ns;
}

/* The fault of this kind whose time has come, if any. */
struct fault *due(struct device *device, int where)
{
  int64_t now = card_now_ns(), frames = device->earlier + device->application;
  int i;

  for (i = 0; i < FAULTS; i++) {
    struct fault *fault = &device->stream->faults[i];

    if (fault->where != where)
      continue;
    if (has_ended(fault, now))
      fault->where = FAULT_NONE;
    else if (fault->at_frame < 0 || frames >= fault->at_frame)
      return fault;
  }
  return NULL;
}

void strike(struct fault *fault)
{
  if (!fault->since_ns)
    fault->since_ns = card_now_ns();
  if (fault->times > 0 && --fault->times == 0)
    fault->where = FAULT_NONE;
}

/* Strikes if a fault of this kind is due: minus its errno, or 0. */
int error_of(struct device *device, int where)
{
  struct fault *fault = due(device, where);
  int error;

  if (!fault)
    return 0;
  error = fault->error;
  strike(fault);
  device->stream->errors++;
  return -error;
}

/* Frames that may still move before a fault strikes, so that it does at its very frame. */
int64_t before_fault(const struct device *device)
{
  int64_t nearest = INT64_MAX;
  int i;

  for (i = 0; i < FAULTS; i++) {
    const struct fault *fault = &device->stream->faults[i];
    int64_t left = fault->at_frame - device->earlier - device->application;

    if (fault->where >= FAULT_TRANSFER && fault->at_frame >= 0 && left > 0 && left < nearest)
      nearest = left;
  }
  return nearest;
}
