/* The converter's clock: where it stands, whether poll is ready, and when it will be. */
#include "device.h"

#include <math.h>
#include <sys/timerfd.h>

static void wake_at(struct device *device, int64_t when_ns)
{
  struct itimerspec timer = {{0, 0}, {0, 0}};

  if (when_ns != INT64_MAX) {
    if (when_ns < 1)
      when_ns = 1; /* long ago: readable at once, and until the timer is set anew */
    timer.it_value.tv_sec = when_ns / 1000000000;
    timer.it_value.tv_nsec = when_ns % 1000000000;
  }
  timerfd_settime(device->timer, TFD_TIMER_ABSTIME, &timer, NULL);
}

static int is_fault_due(struct device *device)
{
  return due(device, FAULT_TRANSFER) || due(device, FAULT_POLL) || due(device, FAULT_UNPLUG) ||
         (device->running && (due(device, FAULT_XRUN) || due(device, FAULT_SUSPEND)));
}

/* Would poll on a real card return now? */
int is_ready(struct device *device, int64_t now)
{
  int64_t wanted = device->avail_min + device->stream->wake_offset;

  if (is_gone(device) || is_fault_due(device))
    return 1;
  switch (device->io.state) {
  case SND_PCM_STATE_DRAINING:
    return is_capture(device) || device->hardware >= device->application;
  case SND_PCM_STATE_PREPARED:
    return !is_capture(device) && available(device) >= device->avail_min;
  case SND_PCM_STATE_RUNNING:
    if (due(device, FAULT_STALL))
      return 0;
    if (due(device, FAULT_FREEZE))
      return now >= device->frozen_ns;
    return available(device) >= (wanted > 1 ? wanted : 1);
  case SND_PCM_STATE_PAUSED:
    return available(device) >= device->avail_min;
  default:
    return 1;
  }
}

/* Sets the timer for the time when poll has something to tell. */
void schedule(struct device *device)
{
  struct stream *stream = device->stream;
  struct fault *fault;
  int64_t now = card_now_ns(), wanted, missing, step;

  if (is_ready(device, now)) {
    wake_at(device, 0);
    return;
  }
  fault = due(device, FAULT_STALL);
  if (!device->running || fault) {
    wake_at(device, fault && fault->lasts_ns && fault->since_ns
                        ? fault->since_ns + fault->lasts_ns + 1000
                        : INT64_MAX);
    return;
  }
  if (due(device, FAULT_FREEZE)) {
    wake_at(device, device->frozen_ns);
    return;
  }
  wanted = device->avail_min + stream->wake_offset;
  if (device->io.state == SND_PCM_STATE_DRAINING)
    wanted = device->io.buffer_size;
  else if (wanted > device->stop_threshold)
    wanted = device->stop_threshold; /* an overrun wakes too */
  missing = device->hardware + (wanted > 1 ? wanted : 1) - available(device);
  step = stream->pointer_step > 1 ? stream->pointer_step : 1;
  missing = (missing + step - 1) / step * step;
  wake_at(device, device->clock_ns +
                      (int64_t)ceil((missing - device->clock) / frames_per_ns(device)) + 1000);
}

/* A source that was put on while we run begins with the next frame of the converter. */
void follow_source(struct device *device)
{
  struct card *card = device->card;

  if (!is_capture(device) || card->source_seen == card->source_serial)
    return;
  card->source_seen = card->source_serial;
  load_source(device);
  device->base = device->running ? -device->hardware * source_step(device) : 0;
  card->source_next = 0;
  card->room_position = 0;
  card->room_ns = 0;
}

/* Keeps in the state where we are, for the next start, which another process may do. */
void remember(struct device *device)
{
  struct card *card = device->card;
  struct stream *stream = device->stream;

  stream->frames = device->earlier + device->application;
  if (!is_capture(device) || !device->running)
    return;
  card->source_next = device->base + device->application * source_step(device);
  card->room_position = device->base + device->clock * source_step(device);
  card->room_ns = device->clock_ns;
}

static void halt(struct device *device, snd_pcm_state_t state)
{
  remember(device);
  device->running = 0;
  snd_pcm_ioplug_set_state(&device->io, state);
  tell_status(device, snd_pcm_state_name(state));
}

/* What the room says while the clock stands still is lost, in whole frames. */
static void miss(struct device *device, double frames)
{
  int64_t lost;

  device->missed += frames;
  lost = (int64_t)device->missed;
  device->missed -= lost;
  device->base += lost * source_step(device);
  device->stream->frames_lost += lost;
}

/* Moves the converter on while it is not stalled. */
static void turn(struct device *device, int64_t now)
{
  struct stream *stream = device->stream;
  double moved = (now - device->clock_ns) * frames_per_ns(device);
  int64_t step = stream->pointer_step > 1 ? stream->pointer_step : 1, reached;
  struct fault *fault;
  int was_stalled;

  device->clock_ns = now;
  was_stalled = device->stalled;
  fault = due(device, FAULT_STALL);
  device->stalled = fault != NULL;
  if (fault && !fault->since_ns)
    fault->since_ns = now;
  if (was_stalled || fault) {
    if (is_capture(device) && device->card->goes_on)
      miss(device, moved);
    return;
  }
  stream->clock_frames -= (int64_t)device->clock;
  device->clock += moved;
  stream->clock_frames += (int64_t)device->clock;
  reached = (int64_t)device->clock / step * step;
  fault = due(device, FAULT_FREEZE);
  if (fault && !fault->since_ns)
    fault->since_ns = now;
  if (fault)
    return;
  if (device->io.state == SND_PCM_STATE_DRAINING && reached > device->application)
    reached = device->application;
  if (reached > device->hardware)
    device->hardware = reached;
}

/* Brings everything up to now: the clock, the faults that strike, and the state. */
void advance(struct device *device)
{
  struct stream *stream = device->stream;
  struct fault *fault;

  follow_source(device);
  if ((fault = due(device, FAULT_UNPLUG))) {
    strike(fault);
    device->card->index = -1;
  }
  if (is_gone(device)) {
    if (device->io.state != SND_PCM_STATE_DISCONNECTED)
      halt(device, SND_PCM_STATE_DISCONNECTED);
  } else if (device->running) {
    turn(device, card_now_ns());
    if ((fault = due(device, FAULT_SUSPEND))) {
      strike(fault);
      stream->suspends++;
      halt(device, SND_PCM_STATE_SUSPENDED);
      return;
    }
    fault = due(device, FAULT_XRUN);
    if (fault || (device->io.state == SND_PCM_STATE_RUNNING &&
                  available(device) >= device->stop_threshold)) {
      if (fault)
        strike(fault);
      stream->xruns++;
      device->silent_ns = card_now_ns();
      halt(device, SND_PCM_STATE_XRUN);
      return;
    }
    remember(device);
  }
  /* alsa-lib asks us to move frames only when there are some: let it come and hear the error */
  if ((is_gone(device) || due(device, FAULT_TRANSFER)) && available(device) < 1)
    device->hardware = device->application + 1 - (is_capture(device) ? 0 : device->io.buffer_size);
}
