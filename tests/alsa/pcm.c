/* The sound of a test card: an alsa-lib external I/O plugin.
 *
 * The microphone plays a file at the pace of a clock of its own, the speaker writes what it is
 * given into files, and there is a real buffer: who comes late has an overrun. The test tells it
 * through card_state.h what to offer and when to fail. The behaviour follows the kernel's:
 * an overrun when the buffer is full (not when it is more than full), POLLERR in every state that
 * cannot move sound, POLLERR|POLLNVAL once the card is gone, one opener a device, and
 * /proc/asound tells who that is.
 *
 * Positions are frames since the last prepare, as alsa-lib counts them. `long` has 64 bits here,
 * so that they never wrap.
 */
#include "card_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <alsa/asoundlib.h>
#include <alsa/pcm_external.h>

_Static_assert(sizeof(long) == 8, "positions must not wrap");

struct device {
  snd_pcm_ioplug_t io;
  struct card *card;
  struct stream *stream;
  int64_t plugged; /* the card's count when we opened: another one means that we are dead */
  char proc[600];  /* pcm0c/sub0 in the tree that looks like /proc/asound */
  int lock;        /* on proc/status: held while we are open */
  int poller, timer, watch;

  int running;
  int64_t clock_ns;  /* when `clock` was last moved on */
  double clock;      /* frames that the converter has moved */
  int64_t hardware;  /* what we tell alsa-lib of `clock`: whole steps, and nothing when frozen */
  int64_t application;
  int64_t earlier;   /* frames handed over before the last prepare */
  int64_t avail_min, stop_threshold;
  int64_t frozen_ns; /* when the next interrupt of a frozen card comes */
  int cut;           /* this read or write has moved all that it may */

  const uint8_t *source;
  int64_t source_frames, source_bytes;
  double base;       /* position in the source of frame 0 */
  int speaker;
  int64_t silent_ns; /* playback: since when an underrun has silenced it; 0: it has not */
};

static int is_capture(const struct device *device)
{
  return device->io.stream == SND_PCM_STREAM_CAPTURE;
}

static int is_gone(const struct device *device)
{
  return device->card->index < 0 || device->card->plugged != device->plugged;
}

static double frames_per_ns(const struct device *device)
{
  return device->io.rate * 1e-9 * device->card->speed * (1.0 + device->card->drift_ppm * 1e-6);
}

/* Source frames for each frame of the stream. */
static double source_step(const struct device *device)
{
  return (double)device->card->source_rate / device->io.rate;
}

/* Frames that wait for the application: to be read, or free to be written. */
static int64_t available(const struct device *device)
{
  int64_t ahead = device->hardware - device->application;

  return is_capture(device) ? ahead : ahead + (int64_t)device->io.buffer_size;
}

/* ---- faults ---- */

static int has_ended(const struct fault *fault, int64_t now)
{
  return fault->lasts_ns > 0 && fault->since_ns > 0 && now >= fault->since_ns + fault->lasts_ns;
}

/* The fault of this kind whose time has come, if any. */
static struct fault *due(struct device *device, int where)
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

static void strike(struct fault *fault)
{
  if (!fault->since_ns)
    fault->since_ns = card_now_ns();
  if (fault->times > 0 && --fault->times == 0)
    fault->where = FAULT_NONE;
}

/* Strikes if a fault of this kind is due: minus its errno, or 0. */
static int error_of(struct device *device, int where)
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
static int64_t before_fault(const struct device *device)
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

/* ---- /proc/asound ---- */

static void tell(const struct device *device, const char *name, const char *format, ...)
{
  char path[640];
  va_list arguments;
  FILE *file;

  if (is_gone(device))
    return; /* its folder may already be another's */
  snprintf(path, sizeof path, "%s/%s", device->proc, name);
  file = fopen(path, "we");
  if (!file)
    return;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fclose(file);
}

static void tell_status(const struct device *device, const char *state)
{
  tell(device, "status",
       "state: %s\nowner_pid   : %d\ntrigger_time: %.9f\ntstamp      : 0.000000000\n"
       "delay       : 0\navail       : %lld\navail_max   : 0\n-----\n"
       "hw_ptr      : %lld\nappl_ptr    : %lld\n",
       state, device->stream->owner, device->stream->started_ns * 1e-9,
       (long long)available(device), (long long)device->hardware,
       (long long)device->application);
}

/* ---- the source ---- */

static void forget_source(struct device *device)
{
  if (device->source)
    munmap((void *)device->source, device->source_bytes);
  device->source = NULL;
  device->source_frames = 0;
}

static void load_source(struct device *device)
{
  const struct card *card = device->card;
  struct stat status;
  int file;

  forget_source(device);
  if (!*card->source_path)
    return;
  file = open(card->source_path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return;
  if (!fstat(file, &status) && status.st_size > 0) {
    void *bytes = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);

    if (bytes != MAP_FAILED) {
      device->source = bytes;
      device->source_bytes = status.st_size;
      device->source_frames = status.st_size / card->source_channels /
                              (snd_pcm_format_physical_width(card->source_format) / 8);
    }
  }
  close(file);
}

/* A sample as a part of full scale; a double holds every format without loss. */
static double decode(const uint8_t *at, int format)
{
  switch (format) {
  case SND_PCM_FORMAT_S16_LE:
    return (int16_t)(at[0] | at[1] << 8) / 32768.0;
  case SND_PCM_FORMAT_S24_LE:
  case SND_PCM_FORMAT_S24_3LE:
    return (int32_t)((uint32_t)at[0] << 8 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 24) /
           2147483648.0;
  case SND_PCM_FORMAT_S32_LE: {
    int32_t value;

    memcpy(&value, at, sizeof value);
    return value / 2147483648.0;
  }
  default: {
    float value;

    memcpy(&value, at, sizeof value);
    return value;
  }
  }
}

static int64_t whole(double value, double full_scale)
{
  double scaled = rint(value * full_scale);

  if (scaled >= full_scale)
    return (int64_t)full_scale - 1;
  return scaled < -full_scale ? (int64_t)-full_scale : (int64_t)scaled;
}

static void encode(uint8_t *at, int format, double value, int padding)
{
  int64_t number;
  float single;

  switch (format) {
  case SND_PCM_FORMAT_S16_LE:
    number = whole(value, 32768.0);
    memcpy(at, &number, 2);
    return;
  case SND_PCM_FORMAT_S24_LE:
    number = whole(value, 8388608.0);
    memcpy(at, &number, 4);
    if (padding == PADDING_ZERO)
      at[3] = 0;
    else if (padding == PADDING_JUNK)
      at[3] = at[0] ^ 0x5a;
    return;
  case SND_PCM_FORMAT_S24_3LE:
    number = whole(value, 8388608.0);
    memcpy(at, &number, 3);
    return;
  case SND_PCM_FORMAT_S32_LE:
    number = whole(value, 2147483648.0);
    memcpy(at, &number, 4);
    return;
  default:
    single = (float)fmax(-1.0, fmin(1.0, value));
    memcpy(at, &single, 4);
  }
}

static double source_sample(const struct device *device, int64_t frame, int channel)
{
  const struct card *card = device->card;
  int width = snd_pcm_format_physical_width(card->source_format) / 8;

  if (card->source_loops && device->source_frames && frame >= 0)
    frame %= device->source_frames;
  if (frame < 0 || frame >= device->source_frames)
    return 0;
  return decode(device->source + (frame * card->source_channels + channel) * width,
                card->source_format);
}

/* Straight lines between the source's frames when its rate is not ours; exact when it is. */
static double heard(const struct device *device, int64_t position, int channel)
{
  const struct card *card = device->card;
  double at = device->base + position * source_step(device);
  int64_t frame = (int64_t)floor(at);
  double part = at - frame, value;
  int from = channel < card->map_count ? card->channel_map[channel]
             : card->source_channels == 1 ? 0
                                          : channel;

  if (from < 0 || from >= card->source_channels)
    return 0;
  value = source_sample(device, frame, from);
  if (part > 0)
    value += part * (source_sample(device, frame + 1, from) - value);
  return value;
}

/* What the mixer makes of one channel: a factor, 0 when it is switched off. */
static double mixer_gain(const struct card *card, int channel, int gain_role, int switch_role)
{
  double gain_cdb = 0;
  int i;

  for (i = 0; i < card->control_count; i++) {
    const struct control *control = &card->controls[i];
    int value = control->values[channel < control->channels ? channel : control->channels - 1];

    if (control->role == switch_role && !value)
      return 0;
    if (control->role == gain_role)
      gain_cdb += control->gain_minimum_cdb +
                  (double)control->gain_step_cdb * (value - control->minimum);
  }
  return gain_cdb == 0 ? 1 : pow(10, gain_cdb / 2000);
}

/* ---- the clock ---- */

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
static int is_ready(struct device *device, int64_t now)
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
static void schedule(struct device *device)
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
static void follow_source(struct device *device)
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
static void remember(struct device *device)
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

/* Moves the converter on while it is not stalled. */
static void turn(struct device *device, int64_t now)
{
  struct stream *stream = device->stream;
  double moved = (now - device->clock_ns) * frames_per_ns(device);
  int64_t step = stream->pointer_step > 1 ? stream->pointer_step : 1, reached;

  device->clock_ns = now;
  if (due(device, FAULT_STALL)) {
    struct fault *fault = due(device, FAULT_STALL);

    if (!fault->since_ns)
      fault->since_ns = now;
    if (is_capture(device) && device->card->goes_on) {
      device->base += moved * source_step(device);
      stream->frames_lost += llrint(moved);
    }
    return;
  }
  device->clock += moved;
  stream->clock_frames += llrint(moved);
  reached = (int64_t)device->clock / step * step;
  if (due(device, FAULT_FREEZE)) {
    struct fault *fault = due(device, FAULT_FREEZE);

    if (!fault->since_ns)
      fault->since_ns = now;
    return;
  }
  if (device->io.state == SND_PCM_STATE_DRAINING && reached > device->application)
    reached = device->application;
  if (reached > device->hardware)
    device->hardware = reached;
}

/* Brings everything up to now: the clock, the faults that strike, and the state. */
static void advance(struct device *device)
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

/* ---- what alsa-lib calls ---- */

static snd_pcm_sframes_t on_pointer(snd_pcm_ioplug_t *io)
{
  struct device *device = io->private_data;

  device->application = io->appl_ptr;
  advance(device);
  return device->hardware;
}

static int on_start(snd_pcm_ioplug_t *io)
{
  struct device *device = io->private_data;
  struct card *card = device->card;
  struct stream *stream = device->stream;
  int64_t now = card_now_ns();

  if (is_gone(device))
    return -ENODEV;
  follow_source(device);
  if (is_capture(device)) {
    device->base = card->source_next;
    if (card->goes_on && card->room_ns) {
      /* the room went on while nobody recorded */
      device->base = card->room_position + (now - card->room_ns) * frames_per_ns(device) *
                                               source_step(device);
      device->base = rint(device->base); /* so that equal rates stay bit exact */
      stream->frames_lost += llrint((device->base - card->source_next) / source_step(device));
    }
  } else if (device->silent_ns) {
    stream->frames_lost += llrint((now - device->silent_ns) * frames_per_ns(device));
    device->silent_ns = 0;
  }
  device->clock = device->hardware;
  device->clock_ns = now;
  device->frozen_ns = now;
  device->running = 1;
  stream->starts++;
  stream->started_ns = now;
  tell_status(device, "RUNNING");
  return 0;
}

/* Cuts the recording where the sound stopped: what was dropped never sounded. */
static void cut_recording(struct device *device)
{
  int64_t unplayed = device->application - device->hardware;
  int frame_bytes = snd_pcm_format_physical_width(device->io.format) / 8 * device->io.channels;

  if (is_capture(device) || unplayed <= 0)
    return;
  device->stream->frames_unplayed += unplayed;
  if (device->speaker >= 0) {
    off_t end = lseek(device->speaker, 0, SEEK_END) - unplayed * frame_bytes;

    if (end >= 0 && ftruncate(device->speaker, end) == 0)
      lseek(device->speaker, end, SEEK_SET);
  }
  device->hardware = device->application; /* once is enough */
}

static int on_stop(snd_pcm_ioplug_t *io)
{
  struct device *device = io->private_data;

  device->application = io->appl_ptr;
  if (device->running)
    advance(device);
  cut_recording(device);
  remember(device);
  device->running = 0;
  tell_status(device, "SETUP");
  return 0;
}

static int on_prepare(snd_pcm_ioplug_t *io)
{
  struct device *device = io->private_data;
  int error = error_of(device, FAULT_PREPARE);

  if (error)
    return error;
  if (is_gone(device))
    return -ENODEV;
  cut_recording(device);
  device->earlier += device->application;
  device->application = device->hardware = 0;
  device->clock = 0;
  device->running = 0;
  device->stream->prepares++;
  tell_status(device, "PREPARED");
  schedule(device);
  return 0;
}

static int on_pause(snd_pcm_ioplug_t *io, int enable)
{
  struct device *device = io->private_data;

  device->application = io->appl_ptr;
  advance(device);
  remember(device);
  device->running = !enable;
  device->clock_ns = card_now_ns();
  schedule(device);
  return 0;
}

static uint8_t *sample_at(const snd_pcm_channel_area_t *area, snd_pcm_uframes_t frame)
{
  return (uint8_t *)area->addr + (area->first + area->step * frame) / 8;
}

static void capture(struct device *device, const snd_pcm_channel_area_t *areas,
                    snd_pcm_uframes_t offset, snd_pcm_uframes_t size)
{
  const snd_pcm_ioplug_t *io = &device->io;
  unsigned channel;
  snd_pcm_uframes_t i;

  for (channel = 0; channel < io->channels; channel++) {
    double gain = mixer_gain(device->card, channel, ROLE_CAPTURE_GAIN, ROLE_CAPTURE_SWITCH);

    for (i = 0; i < size; i++)
      encode(sample_at(&areas[channel], offset + i), io->format,
             gain == 0 ? 0 : gain * heard(device, device->application + i, channel),
             device->stream->s24_padding);
  }
}

static int play(struct device *device, const snd_pcm_channel_area_t *areas,
                snd_pcm_uframes_t offset, snd_pcm_uframes_t size)
{
  int width = snd_pcm_format_physical_width(device->io.format) / 8;
  size_t bytes = size * width * device->io.channels;
  uint8_t *frames = malloc(bytes), *at = frames;
  unsigned channel;
  double gains[CHANNELS];
  snd_pcm_uframes_t i;
  ssize_t written;

  if (!frames)
    return -ENOMEM;
  for (channel = 0; channel < device->io.channels; channel++)
    gains[channel] =
        mixer_gain(device->card, channel, ROLE_PLAYBACK_GAIN, ROLE_PLAYBACK_SWITCH);
  for (i = 0; i < size; i++)
    for (channel = 0; channel < device->io.channels; channel++, at += width) {
      memcpy(at, sample_at(&areas[channel], offset + i), width);
      if (gains[channel] != 1)
        encode(at, device->io.format, gains[channel] * decode(at, device->io.format), PADDING_SIGN);
    }
  written = device->speaker < 0 ? (ssize_t)bytes : write(device->speaker, frames, bytes);
  free(frames);
  return written == (ssize_t)bytes ? 0 : -EIO;
}

static snd_pcm_sframes_t on_transfer(snd_pcm_ioplug_t *io, const snd_pcm_channel_area_t *areas,
                                     snd_pcm_uframes_t offset, snd_pcm_uframes_t size)
{
  struct device *device = io->private_data;
  struct stream *stream = device->stream;
  snd_pcm_uframes_t limit = stream->transfer_limit, left;
  int error;

  device->application = io->appl_ptr;
  if (is_gone(device))
    return -ENODEV;
  error = error_of(device, FAULT_TRANSFER);
  if (error)
    return error;
  if (device->cut) {
    /* alsa-lib asks for the rest: saying "not now" makes this read or write a short one */
    device->cut = 0;
    return -EAGAIN;
  }
  left = before_fault(device);
  if (size > left)
    size = left;
  if (limit > 0 && size > limit) {
    size = limit;
    device->cut = 1;
  }
  if (is_capture(device))
    capture(device, areas, offset, size);
  else if ((error = play(device, areas, offset, size)) < 0)
    return error;
  stream->transfers++;
  if (io->access == SND_PCM_ACCESS_RW_INTERLEAVED || io->access == SND_PCM_ACCESS_RW_NONINTERLEAVED)
    device->application += size;
  remember(device);
  schedule(device);
  return size;
}

static int on_poll_descriptors(snd_pcm_ioplug_t *io, struct pollfd *descriptors, unsigned space)
{
  struct device *device = io->private_data;

  if (space < 1)
    return 0;
  device->application = io->appl_ptr;
  advance(device);
  schedule(device);
  descriptors->fd = device->poller;
  descriptors->events = POLLIN | POLLERR | POLLNVAL;
  descriptors->revents = 0;
  return 1;
}

static unsigned short events_of(struct device *device)
{
  unsigned short ready = is_capture(device) ? POLLIN : POLLOUT;
  struct fault *freeze = due(device, FAULT_FREEZE);

  if (is_gone(device))
    return POLLERR | POLLNVAL;
  switch (device->io.state) {
  case SND_PCM_STATE_PREPARED:
  case SND_PCM_STATE_RUNNING:
  case SND_PCM_STATE_PAUSED:
  case SND_PCM_STATE_DRAINING:
    if (freeze)
      device->frozen_ns =
          card_now_ns() + (int64_t)(device->io.period_size / frames_per_ns(device));
    return ready;
  default:
    return ready | POLLERR;
  }
}

static int on_poll_events(snd_pcm_ioplug_t *io, struct pollfd *descriptors, unsigned count,
                          unsigned short *events)
{
  struct device *device = io->private_data;
  char told[512];
  int error;

  device->application = io->appl_ptr;
  device->stream->polls++;
  device->cut = 0;
  *events = 0;
  if (count != 1)
    return -EINVAL;
  while (descriptors->revents && read(device->watch, told, sizeof told) > 0)
    ;
  advance(device);
  error = error_of(device, FAULT_POLL);
  if (error)
    *events = POLLERR;
  else if (is_ready(device, card_now_ns()))
    *events = events_of(device);
  schedule(device);
  return 0;
}

static int on_hw_params(snd_pcm_ioplug_t *io, snd_pcm_hw_params_t *params)
{
  struct device *device = io->private_data;
  struct stream *stream = device->stream;
  char path[400];

  (void)params;
  if (is_gone(device))
    return -ENODEV;
  stream->format = io->format;
  stream->rate = io->rate;
  stream->channel_count = io->channels;
  stream->period = io->period_size;
  stream->buffer = io->buffer_size;
  device->avail_min = io->period_size;
  device->stop_threshold = io->buffer_size;
  tell(device, "hw_params",
       "access: %s\nformat: %s\nsubformat: STD\nchannels: %u\nrate: %u (%u/1)\n"
       "period_size: %lu\nbuffer_size: %lu\n",
       snd_pcm_access_name(io->access), snd_pcm_format_name(io->format), io->channels, io->rate,
       io->rate, io->period_size, io->buffer_size);
  if (is_capture(device) || !*device->card->speaker_path)
    return 0;
  if (device->speaker >= 0)
    close(device->speaker);
  snprintf(path, sizeof path, "%s/%06lld-%s-%u-%u.raw", device->card->speaker_path,
           (long long)stream->opens, snd_pcm_format_name(io->format), io->rate, io->channels);
  device->speaker = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_TRUNC, 0666);
  return device->speaker < 0 ? -EIO : 0;
}

static int on_hw_free(snd_pcm_ioplug_t *io)
{
  tell(io->private_data, "hw_params", "no setup\n");
  return 0;
}

static int on_sw_params(snd_pcm_ioplug_t *io, snd_pcm_sw_params_t *params)
{
  struct device *device = io->private_data;
  snd_pcm_uframes_t frames;

  if (snd_pcm_sw_params_get_avail_min(params, &frames) == 0)
    device->avail_min = frames;
  if (snd_pcm_sw_params_get_stop_threshold(params, &frames) == 0)
    device->stop_threshold = frames > LONG_MAX ? LONG_MAX : (int64_t)frames;
  return 0;
}

static void release(struct device *device)
{
  int *files[] = {&device->poller, &device->timer, &device->watch, &device->speaker, NULL}, **file;

  for (file = files; *file; file++)
    if (**file >= 0)
      close(**file);
  if (device->lock >= 0) {
    if (!is_gone(device))
      device->stream->owner = 0;
    tell(device, "status", "closed\n");
    tell(device, "hw_params", "closed\n");
    close(device->lock);
  }
  forget_source(device);
  card_close(device->card);
  free(device);
}

static int on_close(snd_pcm_ioplug_t *io)
{
  struct device *device = io->private_data;

  remember(device);
  cut_recording(device);
  device->stream->closes++;
  release(device);
  return 0;
}

/* Two tables: a card that cannot pause has no such callback. */
#define CALLBACKS                                                                               \
  .start = on_start, .stop = on_stop, .pointer = on_pointer, .transfer = on_transfer,           \
  .close = on_close, .hw_params = on_hw_params, .hw_free = on_hw_free,                          \
  .sw_params = on_sw_params, .prepare = on_prepare,                                             \
  .poll_descriptors = on_poll_descriptors, .poll_revents = on_poll_events

static const snd_pcm_ioplug_callback_t callbacks = {CALLBACKS};
static const snd_pcm_ioplug_callback_t callbacks_with_pause = {CALLBACKS, .pause = on_pause};

/* ---- opening ---- */

static int lowest(const struct choice *choice)
{
  int value = choice->values[0], i;

  for (i = 1; i < choice->count; i++)
    value = choice->values[i] < value ? choice->values[i] : value;
  return value;
}

static int highest(const struct choice *choice)
{
  int value = choice->values[0], i;

  for (i = 1; i < choice->count; i++)
    value = choice->values[i] > value ? choice->values[i] : value;
  return value;
}

static int offer(struct device *device, int parameter, const struct choice *choice)
{
  if (choice->is_range)
    return snd_pcm_ioplug_set_param_minmax(&device->io, parameter, choice->values[0],
                                           choice->values[1]);
  return snd_pcm_ioplug_set_param_list(&device->io, parameter, choice->count,
                                       (const unsigned *)choice->values);
}

/* alsa-lib wants sizes in bytes: every size in frames, times every size that a frame may have.
 * A card with exact periods is exact if it has one format and one number of channels. */
static int offer_bytes(struct device *device, int parameter, const struct choice *frames)
{
  const struct choice *formats = &device->stream->formats, *channels = &device->stream->channels;
  unsigned sizes[CHOICES * CHOICES], count = 0;
  int widest = 0, narrowest = 64, format, size, channel;

  for (format = 0; format < formats->count; format++) {
    int width = snd_pcm_format_physical_width(formats->values[format]) / 8;

    widest = width > widest ? width : widest;
    narrowest = width < narrowest ? width : narrowest;
  }
  if (frames->is_range)
    return snd_pcm_ioplug_set_param_minmax(&device->io, parameter,
                                           frames->values[0] * narrowest * lowest(channels),
                                           frames->values[1] * widest * highest(channels));
  for (format = 0; format < formats->count; format++)
    for (channel = lowest(channels); channel <= highest(channels); channel++)
      for (size = 0; size < frames->count && count < CHOICES * CHOICES; size++)
        sizes[count++] = snd_pcm_format_physical_width(formats->values[format]) / 8 * channel *
                         frames->values[size];
  return snd_pcm_ioplug_set_param_list(&device->io, parameter, count, sizes);
}

static int offer_everything(struct device *device)
{
  const struct stream *stream = device->stream;
  static const unsigned access[] = {SND_PCM_ACCESS_RW_INTERLEAVED, SND_PCM_ACCESS_MMAP_INTERLEAVED};
  int error;

  (void)((error = snd_pcm_ioplug_set_param_list(&device->io, SND_PCM_IOPLUG_HW_ACCESS, 2,
                                                access)) < 0 ||
         (error = offer(device, SND_PCM_IOPLUG_HW_FORMAT, &stream->formats)) < 0 ||
         (error = offer(device, SND_PCM_IOPLUG_HW_CHANNELS, &stream->channels)) < 0 ||
         (error = offer(device, SND_PCM_IOPLUG_HW_RATE, &stream->rates)) < 0 ||
         (error = offer(device, SND_PCM_IOPLUG_HW_PERIODS, &stream->periods)) < 0 ||
         (error = offer_bytes(device, SND_PCM_IOPLUG_HW_PERIOD_BYTES, &stream->period_frames)) <
             0 ||
         (error = offer_bytes(device, SND_PCM_IOPLUG_HW_BUFFER_BYTES, &stream->buffer_frames)) < 0);
  return error;
}

/* One opener a device: the second one is told that it is busy, as the kernel does. */
static int take(struct device *device)
{
  char path[640];

  snprintf(path, sizeof path, "%s/status", device->proc);
  device->lock = open(path, O_RDWR | O_CLOEXEC);
  if (device->lock < 0)
    return -ENODEV;
  if (flock(device->lock, LOCK_EX | LOCK_NB) < 0) {
    close(device->lock);
    device->lock = -1;
    return -EBUSY;
  }
  device->stream->owner = syscall(SYS_gettid); /* a thread, as the kernel has it */
  tell_status(device, "OPEN");
  return 0;
}

static int make_poller(struct device *device, const char *folder)
{
  struct epoll_event event = {.events = EPOLLIN};

  device->poller = epoll_create1(EPOLL_CLOEXEC);
  device->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  device->watch = card_watch(folder, IN_ATTRIB);
  if (device->poller < 0 || device->timer < 0 || device->watch < 0 ||
      epoll_ctl(device->poller, EPOLL_CTL_ADD, device->timer, &event) < 0 ||
      epoll_ctl(device->poller, EPOLL_CTL_ADD, device->watch, &event) < 0)
    return -errno;
  return 0;
}

static int open_device(snd_pcm_t **handle, const char *name, snd_pcm_stream_t direction, int mode,
                       const char *root, const char *wanted, long number)
{
  struct device *device;
  char folder[512];
  int error;
  struct card *card = card_open(root, wanted, folder, sizeof folder, &error);

  if (!card)
    return error;
  card->streams[direction].opens_tried++;
  device = calloc(1, sizeof *device);
  if (!device) {
    card_close(card);
    return -ENOMEM;
  }
  device->card = card;
  device->stream = &card->streams[direction];
  device->plugged = card->plugged;
  device->earlier = device->stream->frames;
  device->poller = device->timer = device->watch = device->speaker = device->lock = -1;
  snprintf(device->proc, sizeof device->proc, "%s/pcm%ld%c/sub0", folder, number,
           direction == SND_PCM_STREAM_CAPTURE ? 'c' : 'p');
  device->io.version = SND_PCM_IOPLUG_VERSION;
  device->io.name = card->name;
  device->io.flags = SND_PCM_IOPLUG_FLAG_MONOTONIC | SND_PCM_IOPLUG_FLAG_BOUNDARY_WA;
  device->io.callback = device->stream->can_pause ? &callbacks_with_pause : &callbacks;
  device->io.private_data = device;
  error = number != 0 || !device->stream->present ? -ENOENT : error_of(device, FAULT_OPEN);
  if (error || (error = take(device)) < 0 || (error = make_poller(device, folder)) < 0 ||
      (error = snd_pcm_ioplug_create(&device->io, name, direction, mode)) < 0) {
    release(device);
    return error;
  }
  device->stream->opens++;
  if (direction == SND_PCM_STREAM_CAPTURE) {
    follow_source(device);
    load_source(device);
  }
  error = offer_everything(device);
  if (error < 0) {
    snd_pcm_ioplug_delete(&device->io);
    return error;
  }
  *handle = device->io.pcm;
  return 0;
}

SND_PCM_PLUGIN_DEFINE_FUNC(oyez_card)
{
  snd_config_iterator_t i, next;
  const char *card_root = NULL, *wanted = NULL;
  long number = 0;

  (void)root;
  snd_config_for_each(i, next, conf)
  {
    snd_config_t *entry = snd_config_iterator_entry(i);
    const char *id;

    if (snd_config_get_id(entry, &id) < 0 || !strcmp(id, "type") || !strcmp(id, "comment") ||
        !strcmp(id, "hint"))
      continue;
    if (!strcmp(id, "root"))
      snd_config_get_string(entry, &card_root);
    else if (!strcmp(id, "card"))
      snd_config_get_string(entry, &wanted);
    else if (!strcmp(id, "device"))
      snd_config_get_integer(entry, &number);
    else {
      SNDERR("oyez_card: unknown field %s", id);
      return -EINVAL;
    }
  }
  if (!card_root || !wanted) {
    SNDERR("oyez_card: root and card are needed");
    return -EINVAL;
  }
  return open_device(pcmp, name, stream, mode, card_root, wanted, number);
}

SND_PCM_PLUGIN_SYMBOL(oyez_card);
