/* A Predict server on gRPC C++, its asynchronous interface on one thread: y = x / 2 + 2 of the
 * first numbers of x, at most as many as bench_serve_peers.py's models answer. Prints its port.
 *
 *     serve_grpc NUMBERS */
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "predict.grpc.pb.h"

using tensorflow::serving::PredictionService;
using tensorflow::serving::PredictRequest;
using tensorflow::serving::PredictResponse;
using tensorflow::serving::Tensor;

namespace
{

size_t most = 0;

grpc::Status predict(const PredictRequest &request, PredictResponse *response)
{
    const auto x = request.inputs().find("x");
    if (x == request.inputs().end()) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "input x is missing"};
    }
    std::vector<float> in(x->second.float_val().begin(), x->second.float_val().end());
    if (in.empty()) {
        in.resize(x->second.tensor_content().size() / sizeof(float));
        std::memcpy(in.data(), x->second.tensor_content().data(), in.size() * sizeof(float));
    }
    Tensor &y = (*response->mutable_outputs())["y"];
    const size_t count = std::min(in.size(), most);
    y.set_dtype(1);
    y.mutable_tensor_shape()->add_dim()->set_size(static_cast<int64_t>(count));
    for (size_t i = 0; i < count; i++) {
        y.add_float_val(in[i] / 2 + 2);
    }
    response->mutable_model_spec()->set_name(request.model_spec().name());
    response->mutable_model_spec()->mutable_version()->set_value(1);
    return grpc::Status::OK;
}

/* One call: requested, then answered, then gone. */
class Call
{
  public:
    Call(PredictionService::AsyncService *service, grpc::ServerCompletionQueue *queue)
        : service_(service), queue_(queue), answer_(&context_)
    {
        service_->RequestPredict(&context_, &request_, &answer_, queue_, queue_, this);
    }

    void proceed()
    {
        if (answered_) {
            delete this;
            return;
        }
        new Call(service_, queue_);
        PredictResponse response;
        const grpc::Status status = predict(request_, &response);
        answered_ = true;
        answer_.Finish(response, status, this);
    }

  private:
    PredictionService::AsyncService *service_;
    grpc::ServerCompletionQueue *queue_;
    grpc::ServerContext context_;
    PredictRequest request_;
    grpc::ServerAsyncResponseWriter<PredictResponse> answer_;
    bool answered_ = false;
};

} // namespace

int main(int argc, char **argv)
{
    most = argc > 1 ? static_cast<size_t>(std::atol(argv[1])) : 10;
    PredictionService::AsyncService service;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (server == nullptr) {
        return 1;
    }
    std::printf("%d\n", port);
    std::fflush(stdout);
    for (int i = 0; i < 200; i++) {
        new Call(&service, queue.get());
    }
    void *tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) {
        if (ok) {
            static_cast<Call *>(tag)->proceed();
        }
    }
    return 0;
}
